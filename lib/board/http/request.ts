/** The fields that the board reads of a request of Express or Fastify. */
export interface BoardRequest {
  readonly method: string;
  readonly url: string;
  /** As it came: Express cuts `url` in a mounted router. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

export const urlOf = (request: BoardRequest): URL =>
  new URL(request.originalUrl ?? request.url, 'http://board.invalid');

/**
 * The beginning of the addresses of the files, seen from the page. A browser takes them relative to the folder of the page: that is
 * the page itself only if its address ends in a slash. A prefix that a proxy adds or removes does not matter.
 */
export function baseOf(request: BoardRequest): string {
  const last = /[^/]*$/.exec(urlOf(request).pathname)?.[0] ?? '';
  return last === '' ? './' : `./${last}/`;
}
