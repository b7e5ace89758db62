export interface Answer {
  readonly status: number;
  /** From the click to the answer, in ms. */
  readonly wait: number;
}

/** All buyers at once, dealt out evenly to the shops. */
export async function rush(
  shops: readonly string[],
  path: string,
  buyers: number,
  signal?: AbortSignal,
): Promise<Answer[]> {
  return await Promise.all(
    Array.from({ length: buyers }, async (_, buyer) => {
      const clicked = performance.now();
      const shop = shops[buyer % shops.length]!;
      const response = await fetch(`${shop}/${path}`, { method: 'POST', signal: signal ?? null });
      await response.text();
      return { status: response.status, wait: performance.now() - clicked };
    }),
  );
}
