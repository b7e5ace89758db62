import { AsyncResource } from 'node:async_hooks';
import { Observable, type Subscriber, takeUntil } from 'rxjs';
import { onAbort } from '../client/waiting/on-abort.js';

interface Forwarding {
  /** Stops the source. */
  readonly lost?: AbortSignal | undefined;
  /**
   * Asked when the subscriber leaves before the first value: whether the source may be the work of a Promise. It is stopped
   * with its first value then.
   */
  readonly goesOn?: () => boolean;
}

/**
 * Passes values on until the source ends, the subscriber is gone, or the lease is lost. The source is stopped also while it
 * emits, before it has given its subscription back: a source that emits all at once would not stop otherwise.
 */
export function forward(
  source: Observable<unknown>,
  to: Subscriber<unknown>,
  deliver: (value: unknown) => void,
  { lost, goesOn = () => false }: Forwarding = {},
): Promise<void> {
  let isPending = !to.closed;
  let leave = (): void => undefined;
  const stopped = new Observable<void>((stop) => {
    // The source cleans up in its own context, under its lock, also when another context stops it.
    const end = AsyncResource.bind(() => {
      stop.next();
    });
    leave = () => {
      if (!isPending || !goesOn()) end();
    };
    to.add(leave);
    if (lost !== undefined) to.add(onAbort(lost, end));
  });
  return new Promise((resolve, reject) => {
    takeUntil<unknown>(stopped)(source).subscribe({
      next: (value) => {
        isPending = false;
        deliver(value);
        if (to.closed) leave();
      },
      error: reject,
      complete: resolve,
    });
  });
}
