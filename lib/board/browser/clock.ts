let server = Date.now();
let receivedAt = performance.now();

/** The time of the server when this was sent; the way took a moment, which is as good as nothing here. */
export function serverSays(at: number): void {
  server = at;
  receivedAt = performance.now();
}

/** The time of the server, ms. The clock of this machine may be wrong. */
export const serverTime = (): number => server + (performance.now() - receivedAt);
