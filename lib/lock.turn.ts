const nextTick = process.nextTick.bind(process);

/**
 * Calls back at the end of this turn of the event loop, even if fake timers of a test are installed later. Where they were
 * installed before this was loaded, the real function is not available. Then a promise, which no fake timers replace, calls
 * back a little earlier.
 */
export const atEndOfTurn: (callback: () => void) => void =
  'clock' in (Reflect.get(process, 'nextTick') as object)
    ? (callback) => void Promise.resolve().then(callback)
    : (callback) => {
        nextTick(callback);
      };
