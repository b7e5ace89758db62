import { jest } from '@jest/globals';

/**
 * From here on the timers and the clock of a spec file are virtual: when nothing else is left to do, the next timer fires. For
 * specs whose store is in memory. A script in virtual time waits for nothing real: no server, no other process.
 */
export function useVirtualTime(): void {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'] });
  jest.setTimerTickMode({ mode: 'nextAsync' });
}

/** As that of node:timers/promises, in virtual time. */
export async function pass<T = void>(
  time: number,
  value?: T,
  { signal }: { signal?: AbortSignal } = {},
): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve(value as T);
    }, time);
    const abort = () => {
      clearTimeout(timer);
      reject(new DOMException('The operation was aborted', 'AbortError'));
    };
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Waits until something is so, which is looked at each ms of virtual time. */
export async function until(condition: () => unknown, patience = 600_000): Promise<void> {
  const end = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Not so in ${String(patience)} ms: ${String(condition)}`);
    await pass(1);
  }
}

/** The clock goes on by so many ms and no timer fires, as during work that lets the event loop do nothing else. */
export function standStill(time: number): void {
  for (const clock of [Date, performance]) {
    const present = clock.now.bind(clock);
    clock.now = () => present() + time;
  }
}

/** As AbortSignal.timeout(), in virtual time. */
export function abortAfter(time: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => {
    controller.abort();
  }, time);
  return controller.signal;
}
