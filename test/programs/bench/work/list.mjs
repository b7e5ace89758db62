/** All pages of `list`. */
export async function play({ client }) {
  const begun = performance.now();
  const names = new Set();
  let cursor;
  do {
    const page = await client.service.list({ limit: 1_000, cursor });
    for (const { name } of page.locks) names.add(name);
    cursor = page.cursor;
  } while (cursor !== null);
  return { seconds: (performance.now() - begun) / 1_000, count: names.size };
}
