/** Of each signal that is listened to, what is to be called back. */
const listening = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back when the signal aborts, at once where it has. However many calls one signal serves, it has one listener:
 * Node warns of a leak from eleven on. Nothing of a call stays with it, unlike what `AbortSignal.any` leaves with every
 * call on a signal that outlives them.
 * @param callback a function of its own for each call
 * @returns ends that
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
