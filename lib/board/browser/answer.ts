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
