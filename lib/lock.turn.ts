const nextTick = process.nextTick.bind(process);

/**
 * Calls back at the end of this turn of the event loop, whatever fake timers of a test replace later. Where they were there
 * before this was loaded, the real one is not to be had, and a promise, which none replace, calls back a little earlier.
 */
export const atEndOfTurn: (callback: () => void) => void =
  'clock' in (Reflect.get(process, 'nextTick') as object)
    ? (callback) => void Promise.resolve().then(callback)
    : (callback) => {
        nextTick(callback);
      };
