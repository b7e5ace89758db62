import { AsyncLocalStorage } from 'node:async_hooks';

/** One storage for the scopes of all processes: a context never leaves its process, and a storage is never given back. */
export const scopes = new AsyncLocalStorage();

/** Runs the callback in the scope of this moment, as a timer of Node does. */
export function inThisScope(callback: () => void): () => void {
  const scope = scopes.getStore();
  return scope === undefined
    ? callback
    : () => {
        scopes.run(scope, callback);
      };
}
