/**
 * What the board has answered. A guard, a login and a proxy answer in words of their own, which need not be JSON.
 * @throws Error that says why there is no such answer
 */
export async function answerOf<T>(response: Response): Promise<T> {
  const answer = (await response.json().catch(() => null)) as { message?: unknown } | null;
  if (response.ok && answer !== null) return answer as T;
  if (response.ok) throw new Error('the answer is not one of the board; load the page again');
  const message = answer?.message;
  throw new Error(typeof message === 'string' ? message : `the answer was ${String(response.status)}`);
}
