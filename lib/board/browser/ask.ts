/** An element of the page that is there in any case. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no ${id}`);
  return element;
}

const { base = './' } = document.documentElement.dataset;

/** Without the user and the password that the address of the page may have: `fetch` takes no such address. */
export function addressOf(file: string, query: Readonly<Record<string, string>>): string {
  const url = new URL(base + file, location.origin + location.pathname);
  url.search = new URLSearchParams(query).toString();
  return url.href;
}

/**
 * The answer of the board. A guard, a login or a proxy may answer in its own words, which need not be JSON.
 * @throws Error with the reason, if the board has not answered
 */
export async function answerOf<T>(response: Response): Promise<T> {
  const answer = (await response.json().catch(() => null)) as { message?: unknown } | null;
  if (response.ok && answer !== null) return answer as T;
  if (response.ok) throw new Error('the answer is not one of the board; load the page again');
  const message = answer?.message;
  throw new Error(typeof message === 'string' ? message : `the answer was ${String(response.status)}`);
}

/** A page that came over plain HTTP from another host may not use the clipboard itself. */
export function copyText(text: string): void {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard !== undefined) {
    void clipboard.writeText(text).catch(() => undefined);
    return;
  }
  const field = document.body.appendChild(document.createElement('textarea'));
  field.value = text;
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the one way without a secure context
  document.execCommand('copy');
  field.remove();
}
