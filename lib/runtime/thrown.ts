/** Code of the application may throw, or reject with, any value. */
export const asError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

/** The promise of code of the application, which may throw instead of rejecting, or answer without a promise. */
export function promiseOf<T>(run: () => T | Promise<T>): Promise<T> {
  try {
    return Promise.resolve(run());
  } catch (error) {
    return Promise.reject(asError(error));
  }
}
