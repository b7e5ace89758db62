import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import { type LockLostError } from '../api/errors.js';
import {
  isLockAbortedError,
  isLockClosedError,
  isLockLostError,
  isLockTimeoutError,
  isLockUnavailableError,
} from '../api/error-guards.js';
import {
  type AcquireOutcome,
  type AcquisitionObserver,
  type LockAcquireContext,
  type LockHoldContext,
  type LockTraceContext,
  TRACING_CHANNELS,
} from '../api/tracing-channels.js';
import { now } from './holding/deadline.js';
import { inThisScope, runOutsideScopes } from './scope/scope.js';

const acquisitions = tracingChannel<unknown, LockAcquireContext>(TRACING_CHANNELS.acquire);
const holds = tracingChannel<unknown, LockHoldContext>(TRACING_CHANNELS.hold);

/** Before Node 20.13, a tracing channel has no such property. */
const isObserved = <C extends object>(channel: TracingChannel<unknown, C>): boolean =>
  channel.start.hasSubscribers ||
  channel.end.hasSubscribers ||
  channel.asyncStart.hasSubscribers ||
  channel.asyncEnd.hasSubscribers ||
  channel.error.hasSubscribers;

export const areAcquisitionsTraced = (): boolean => isObserved(acquisitions);

/** Kinds of success, by priority: a multi-lock reports the first kind that one of its members had. */
const SUCCESSES = ['granted', 'handed-off', 're-entered'] as const;
type Success = (typeof SUCCESSES)[number];

/** The published context of one acquisition. Made only if the channel has subscribers. */
export class AcquisitionTrace implements AcquisitionObserver {
  readonly context: LockAcquireContext;
  private success: Success = 're-entered';
  private readonly askedAt = now();

  constructor(lock: LockTraceContext) {
    this.context = { ...lock, attempts: 0, commands: 0 };
  }

  /** Publishes the call with its answer. */
  publish<T>(run: () => Promise<T>): Promise<T> {
    // An async function, so that an error thrown before the first await is published as the answer, too.
    const traced = inThisScope(async () => {
      try {
        const answer = await run();
        this.ended(answer);
        return answer;
      } catch (error) {
        this.ended(error);
        throw error;
      }
    });
    // The context of the hold refers to this context, which would keep alive a lease that its caller has dropped.
    return runOutsideScopes(() => acquisitions.tracePromise(traced, this.context)).finally(() => {
      Reflect.deleteProperty(this.context, 'result');
    });
  }

  entered(how: Success): void {
    if (SUCCESSES.indexOf(how) < SUCCESSES.indexOf(this.success)) this.success = how;
  }

  waitsFor(holder: string | undefined): void {
    if (holder !== undefined) this.context.holder = holder;
  }

  foundFull(): void {
    this.context.reason = 'queue-full';
  }

  asked(attempts: number, commands: number): void {
    this.context.attempts += attempts;
    this.context.commands += commands;
  }

  private ended(answer: unknown): void {
    const { context } = this;
    context.waited = now() - this.askedAt;
    if (answer instanceof Error) {
      context.outcome = outcomeOf(answer);
      if (isLockTimeoutError(answer) || isLockLostError(answer)) context.reason = answer.reason;
    } else if (answer === null) {
      context.outcome = 'busy';
      context.reason ??= 'timeout';
    } else {
      context.outcome = this.success;
      context.fencingToken = (answer as { fencingToken: number }).fencingToken;
    }
  }
}

function outcomeOf(error: Error): AcquireOutcome {
  if (isLockTimeoutError(error)) return 'busy';
  if (isLockAbortedError(error)) return 'aborted';
  if (isLockUnavailableError(error)) return 'unavailable';
  if (isLockClosedError(error)) return 'closed';
  return isLockLostError(error) ? 'lost' : 'refused';
}

/** The published context of one hold. */
export interface HoldTrace {
  /** @param loss undefined if the caller released it */
  end(heldFor: number, loss: LockLostError | undefined): void;
}

/** Publishes the begin of a hold. Undefined if the channel has no subscribers; then its end is not published either. */
export function traceHold(makeContext: () => LockHoldContext): HoldTrace | undefined {
  if (!isObserved(holds)) return undefined;
  const context = makeContext();
  runOutsideScopes(() => {
    holds.start.publish(context);
    holds.end.publish(context);
  });
  let over = false;
  return {
    end(heldFor, loss) {
      if (over) return;
      over = true;
      context.heldFor = heldFor;
      context.outcome = loss === undefined ? 'released' : 'lost';
      if (loss !== undefined) {
        context.reason = loss.reason;
        context.error = loss;
      }
      runOutsideScopes(() => {
        if (loss !== undefined) holds.error.publish(context);
        holds.asyncStart.publish(context);
        holds.asyncEnd.publish(context);
      });
    },
  };
}
