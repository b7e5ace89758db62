import { LockAbortedError } from '../../api/errors.js';
import { now } from '../holding/deadline.js';
import type { LocalQueue } from './local-queue.js';
import { onAbort } from './on-abort.js';
import type { Tenure, LeaseTerms } from '../holding/tenure.js';
import { type Busy, type WaitRequest, WaitTimer } from './waiting.js';

/** A waiting caller, from its request to its answer. A class, so that thousands of waiters share one shape. */
export class Waiter {
  readonly arrivedAt = now();
  private timer: WaitTimer | undefined;
  private settled = false;
  /** Whether the waiter takes the next answer as its last: it does not wait, or its wait time has ended. */
  impatient: boolean;
  private readonly ignoreSignal: (() => void) | undefined;
  private readonly nested: { over(): void } | undefined;
  /** The counts of the queue when this waiter came; undefined if no trace needs them. */
  private readonly before: Pick<LocalQueue, 'attempts' | 'commands'> | undefined;

  constructor(
    private readonly queue: LocalQueue,
    readonly request: WaitRequest,
    private readonly resolve: (answer: Tenure | Busy) => void,
    private readonly reject: (error: Error) => void,
  ) {
    const { signal, waitTime, trace, nested } = request;
    this.impatient = waitTime === 0;
    this.before = trace && { attempts: queue.attempts, commands: queue.commands };
    this.nested = nested?.({
      name: queue.name,
      queue: queue.terms.queue,
      begunAt: this.arrivedAt,
      until: this.arrivedAt + waitTime,
      end: (cycle) => {
        queue.leave(this);
        this.refuse({ busy: true, holder: undefined, name: queue.name, cycle });
      },
    });
    if (signal === undefined) return;
    this.ignoreSignal = onAbort(signal, () => {
      queue.leave(this);
      this.refuse(new LockAbortedError(queue.name, signal.reason));
    });
  }

  get terms(): LeaseTerms {
    return this.request.terms;
  }

  /** Bounds the wait by the time of the request. Called after the request has been sent, so that the timer does not delay it. */
  limit(): void {
    const { waitTime, answerTime = 0 } = this.request;
    const time = waitTime > 0 ? waitTime : answerTime;
    if (time > 0 && time < Infinity) this.expireAt(this.arrivedAt + time);
  }

  /** Expires the waiter at the moment, unless it has its answer by then. */
  expireAt(moment: number): void {
    if (this.settled) return;
    const expire = () => {
      this.queue.expire(this);
    };
    (this.timer ??= new WaitTimer()).set(moment, expire, (error) => {
      this.queue.leave(this);
      this.refuse(error);
    });
  }

  grant(granted: Tenure): void {
    this.settle();
    this.resolve(granted);
  }

  refuse(answer: Busy | Error): void {
    this.settle();
    if (answer instanceof Error) this.reject(answer);
    else {
      this.waitsFor(answer.holder);
      this.resolve(answer);
    }
  }

  /** For the trace of its call. */
  waitsFor(holder: string | undefined): void {
    this.request.trace?.waitsFor(holder);
  }

  private settle(): void {
    this.settled = true;
    this.timer?.clear();
    this.ignoreSignal?.();
    this.nested?.over();
    const { before, queue } = this;
    if (before !== undefined)
      this.request.trace?.asked(queue.attempts - before.attempts, queue.commands - before.commands);
    queue.answered(this);
  }
}
