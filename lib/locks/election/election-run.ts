import { idleTimerAt, now } from '../../client/holding/deadline.js';
import { refusalOfHandedOut } from '../../client/holding/late-result.js';
import type { LockClient } from '../../client/lock-client.js';
import { onAbort } from '../../client/waiting/on-abort.js';
import { runInScope, Scope } from '../../client/scope/scope.js';
import { POLL } from '../../client/waiting/waiting.js';
import { isLockError, LockClosedError } from '../../api/errors.js';
import { isLockAbortedError, isLockClosedError, isLockUnavailableError } from '../../api/error-guards.js';
import { clearTimer } from '../../runtime/runtime.js';
import { inQuotes } from '../../runtime/text.js';
import { callOf } from '../call.js';
import type { Election, Term } from '../../api/election.js';
import { markElection } from './election-mark.js';
import { HeldTerm } from './held-term.js';
import type { LeaderNews } from './leader-news.js';
import { StoreLock } from '../store-lock.js';

/** Pause between two checks whether the store answers a campaign, ms. */
const LOOK = 1_000;
/** Longest pause after a permanent refusal by the store, ms. */
const LONGEST_PAUSE = 30_000;

/** The label of elections in telemetry. */
const GROUP = 'election';

/** One run of an election: this process campaigns for, leads by and resigns the plain lock of the election's name. */
export class ElectionRun {
  private readonly lock: StoreLock;
  /** Undefined if this process does not lead. */
  term: HeldTerm | undefined;
  /** Aborts at the end of the run, by the caller's signal or a shutdown. */
  private readonly stop = new AbortController();

  constructor(
    private readonly client: LockClient,
    private readonly news: LeaderNews,
    private readonly name: string,
    /** ms; undefined for the module's lease time. */
    readonly leaseTime: number | undefined,
    private readonly callback: (term: Term) => unknown,
  ) {
    this.lock = new StoreLock(name, client);
  }

  get state(): Election['state'] {
    if (this.term === undefined) return 'follower';
    return this.term.isPromised ? 'leading' : 'resigning';
  }

  /**
   * For the shutdown: ends the run, and keeps the lock until the callback has ended. Resolves when this process does
   * not lead.
   */
  async close(): Promise<void> {
    const reason = new LockClosedError(this.name);
    this.stop.abort(reason);
    const { term } = this;
    term?.tell(reason);
    await term?.over;
  }

  /** Resolves at the end of the run. Rejects with the callback's error. */
  async untilOver(signal: AbortSignal | undefined): Promise<void> {
    const { stop } = this;
    const isStopped = (): boolean => stop.signal.aborted;
    const unmark = markElection(this.client, this.name);
    const ignore =
      signal &&
      onAbort(signal, () => {
        stop.abort(signal.reason);
        // A shutdown has told the callback already, and keeps the lock until its end.
        if (this.term?.isPromised === true) this.term.resign(signal.reason);
      });
    try {
      for (let isOver = false; !isOver && !isStopped();) {
        const term = await this.campaign(stop.signal);
        if (term === undefined) return;
        const begunAt = now();
        // A listener to the grant has stopped the run.
        if (isStopped()) await term.end();
        else isOver = await this.lead(term);
        // A queue serves the other processes first. Without a queue, a pause lets them receive the release. A callback that
        // resigns at once may do so every time: without a pause, a store in memory would leave the process no time for
        // anything else.
        const isShort = now() - begunAt < POLL;
        if (!isOver && (isShort || this.client.store.queues === undefined)) await pause(POLL, stop.signal);
      }
    } finally {
      ignore?.();
      unmark();
    }
  }

  /** Undefined if the run was stopped. */
  private async campaign(signal: AbortSignal): Promise<HeldTerm | undefined> {
    const { client, lock, leaseTime, name } = this;
    const outage = this.watchStore();
    try {
      for (let failures = 0; !signal.aborted; failures++) {
        try {
          const scope = Scope.ofCallback(undefined);
          const caller = { inside: undefined, into: scope, site: undefined, byHand: false };
          const given = {
            leaseTime,
            renew: true,
            signal,
            label: GROUP,
            maxWaiting: Infinity,
            failFast: false,
          };
          const call = callOf(client, Infinity, caller, given);
          const tenure = await client.acquire(name, call);
          // The store has lost the grant before the term began.
          if ('busy' in tenure || !tenure.held) continue;
          const lease = lock.begin(tenure, { ...call, inside: scope });
          // A listener to the grant has released the lease or outlasted it, and may do so every time. Without a pause,
          // a store in memory would leave the process no time for anything else.
          if (!lease.held) {
            await pause(POLL, signal);
            continue;
          }
          scope.lease = lease;
          return new HeldTerm(tenure, lease, scope, () => {
            this.news.tell(name, false);
          });
        } catch (error) {
          if (isLockClosedError(error) || isLockAbortedError(error)) return undefined;
          if (!isLockUnavailableError(error)) throw error;
          outage.tell(error);
          await pause(Math.min(LOOK * 2 ** Math.min(failures, 10), LONGEST_PAUSE), signal);
        }
      }
      return undefined;
    } finally {
      outage.end();
    }
  }

  /** @returns whether the callback has ended the run */
  private async lead(term: HeldTerm): Promise<boolean> {
    this.term = term;
    // Kept before the first second, so that other processes find the label of a leader at once.
    this.client.labels.keep();
    if (term.isPromised) this.news.tell(this.name, true);
    let failure: { readonly error: unknown } | undefined;
    try {
      // A listener to the news of the term may have ended it.
      if (term.isPromised) {
        const result = await runInScope(term.scope, async () => await this.callback(term));
        await refusalOfHandedOut(result, 'Election.run');
      }
    } catch (error) {
      failure = { error };
    }
    const isOwnEnd = term.isPromised;
    const reason: unknown = term.signal.reason;
    await term.end();
    this.term = undefined;
    if (failure === undefined) return isOwnEnd;
    if (isOwnEnd) throw failure.error;
    if (!isOfAbort(failure.error, reason)) {
      const { message } = failure.error instanceof Error ? failure.error : new Error(String(failure.error));
      this.client.warn({
        code: 'term-error',
        message: `The work of a term of "${inQuotes(this.name)}" has failed after the end of the term: ${message}`,
      });
    }
    return false;
  }

  /** Reports once that the store does not answer the campaign. */
  private watchStore(): { tell(error: unknown): void; end(): void } {
    let told = false;
    const tell = (error: unknown): void => {
      if (told) return;
      told = true;
      const { message } =
        isLockUnavailableError(error) && error.cause instanceof Error ? error.cause : (error as Error);
      this.client.warn({
        code: 'election-unreachable',
        message: `Cannot campaign for "${inQuotes(this.name)}", trying until the store answers: ${message}`,
      });
    };
    let timer: NodeJS.Timeout | undefined;
    const look = (): void => {
      const { callers } = this.client;
      const failure = callers.failureOf(this.name);
      if (failure !== undefined) tell(failure);
      // Between two attempts nothing has been answered.
      else if (callers.isAwaited(this.name)) told = false;
      timer = idleTimerAt(now() + LOOK, look);
    };
    timer = idleTimerAt(now() + LOOK, look);
    return {
      tell,
      end: () => {
        clearTimer(timer);
      },
    };
  }
}

/** Whether the abort of the term caused the error. By shape, because the error may come from another realm, as in Jest. */
function isOfAbort(error: unknown, reason: unknown): boolean {
  if (error === reason || isLockError(error)) return true;
  const { name, cause } = (error ?? {}) as { name?: unknown; cause?: unknown };
  return name === 'AbortError' || (cause !== undefined && cause === reason);
}

/** Ends at once when the signal aborts. */
const pause = (time: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = idleTimerAt(now() + time, () => {
      ignore();
      resolve();
    });
    const ignore = onAbort(signal, () => {
      clearTimer(timer);
      resolve();
    });
  });
