/** The callbacks of each signal that has a listener. */
const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back when the signal aborts, at once where it has already aborted. A signal has one listener, however many calls
 * use it: Node warns of a leak from eleven listeners on. A call leaves nothing on the signal, while `AbortSignal.any`
 * leaves something with every call on a signal that outlives it.
 * @param callback a function of its own for each call
 * @returns a function that ends this
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => undefined;
  }
  let callbacks = listening.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    listening.set(signal, callbacks);
    signal.addEventListener('abort', tellAll);
  }
  const mine = callbacks.add(callback);
  return () => {
    mine.delete(callback);
    if (mine.size === 0 && listening.get(signal) === mine) stopListening(signal);
  };
}

function tellAll(this: AbortSignal): void {
  const callbacks = listening.get(this) ?? [];
  stopListening(this);
  for (const callback of callbacks) callback();
}

function stopListening(signal: AbortSignal): void {
  listening.delete(signal);
  signal.removeEventListener('abort', tellAll);
}
