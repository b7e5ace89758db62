import { LockAbortedError } from '../../api/errors.js';
import { timersAreFaked, timersAreLegacy } from '../../runtime/runtime.js';
import { now } from '../holding/deadline.js';
import type { LocalQueue } from './local-queue.js';
import { onAbort } from './on-abort.js';
import type { Tenure, LeaseTerms } from '../holding/tenure.js';
import { type Busy, type WaitRequest, WaitTimer } from './waiting.js';

/** ms for which a wait shares a timer with all others that have just begun. Most waits end before that. */
const SHORT = 50;

/** A waiting caller, from its request to its answer. A class, so that thousands of waiters share one shape. */
export class Waiter {
  readonly arrivedAt = now();
  private timer: WaitTimer | undefined;
  private settled = false;
  /** Whether it has left the shared timer. */
  isOver = true;
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
    const { time } = this;
    if (this.settled || !(time > 0 && time < Infinity)) return;
    if (time < 2 * SHORT || timersAreFaked() || timersAreLegacy()) this.limitAlone();
    else {
      this.isOver = false;
      this.queue.client.begunWaits.add(this, this.arrivedAt);
    }
  }

  /** Bounds the wait by a timer of its own. */
  limitAlone(): void {
    this.expireAt(this.arrivedAt + this.time);
  }

  /** The moment from which the wait has a timer of its own. */
  get end(): number {
    return this.arrivedAt + SHORT;
  }

  /** Of the request, ms. 0: as long as the store takes. */
  private get time(): number {
    const { waitTime, answerTime = 0 } = this.request;
    return waitTime > 0 ? waitTime : answerTime;
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
    this.queue.client.begunWaits.over(this);
    this.timer?.clear();
    this.ignoreSignal?.();
    this.nested?.over();
    const { before, queue } = this;
    if (before !== undefined)
      this.request.trace?.asked(queue.attempts - before.attempts, queue.commands - before.commands);
    queue.answered(this);
  }
}
