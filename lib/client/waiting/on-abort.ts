const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back when the signal aborts; at once if it has aborted. A signal gets one listener for all calls, because Node
 * warns of a leak from 11 listeners on. A call leaves nothing on a signal, unlike `AbortSignal.any` on a signal that
 * outlives the call.
 * @param callback a separate function for each call
 * @returns a function that removes the callback
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
