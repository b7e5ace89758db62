/**
 * Timers as jsdom has them, in place of those that there are: numbers, which have no methods.
 * @returns puts the others back
 */
export function useBrowserTimers(): () => void {
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const timers = new Map<number, NodeJS.Timeout>();
  let last = 0;
  const numbered =
    (start: typeof setTimeout | typeof setInterval) =>
    (callback: (...given: unknown[]) => void, time?: number, ...given: unknown[]) => {
      timers.set(++last, start(callback, time, ...given));
      return last;
    };
  // A timer that was made before is no number.
  const stopping = (stop: (timer: NodeJS.Timeout | undefined) => void) => (timer: unknown) => {
    stop(typeof timer === 'number' ? timers.get(timer) : (timer as NodeJS.Timeout | undefined));
  };
  Object.assign(globalThis, {
    setTimeout: numbered(setTimeout),
    clearTimeout: stopping(clearTimeout),
    setInterval: numbered(setInterval),
    clearInterval: stopping(clearInterval),
  });
  return () => {
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
  };
}
