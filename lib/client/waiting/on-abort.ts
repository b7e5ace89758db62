interface Listener {
  readonly callbacks: Set<() => void>;
  /** Made for the signal: the `this` of a listener is another object if the signal is no native one. */
  readonly tellAll: () => void;
}

const listening = new WeakMap<AbortSignal, Listener>();

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
  const mine = listening.get(signal) ?? listenTo(signal);
  mine.callbacks.add(callback);
  return () => {
    mine.callbacks.delete(callback);
    if (mine.callbacks.size === 0 && listening.get(signal) === mine) stopListening(signal, mine);
  };
}

function listenTo(signal: AbortSignal): Listener {
  const callbacks = new Set<() => void>();
  const tellAll = () => {
    stopListening(signal, listener);
    for (const callback of callbacks) callback();
  };
  const listener = { callbacks, tellAll };
  listening.set(signal, listener);
  signal.addEventListener('abort', tellAll);
  return listener;
}

function stopListening(signal: AbortSignal, { tellAll }: Listener): void {
  listening.delete(signal);
  signal.removeEventListener('abort', tellAll);
}
