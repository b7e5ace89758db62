import { AsyncLocalStorage } from 'node:async_hooks';
import type { Observable } from 'rxjs';
import { idleTimerAt, now } from '../core/deadline.js';
import { refusalOfHandedOut } from '../core/late-result.js';
import type { LockClient } from '../core/lock-client.js';
import { onAbort } from '../core/on-abort.js';
import { currentScope, runInScope, runOutsideScopes, Scope } from '../core/scope.js';
import { signalOf } from '../core/validation.js';
import { POLL } from '../core/waiting.js';
import {
  isLockAbortedError,
  isLockClosedError,
  isLockError,
  isLockUnavailableError,
  LockClosedError,
  LockConfigError,
} from '../lock.errors.js';
import type { AnswerOptions } from '../lock.options.js';
import { isKept, type LockState } from '../lock.state.js';
import { inQuotes } from '../lock.text.js';
import { clearTimer } from '../lock.runtime.js';
import { callOf } from './call.js';
import type { Election, Term } from './election.js';
import { HeldTerm, resigned } from './held-term.js';
import { LeaderChanges } from './leader-changes.js';
import { PlainLock } from './plain-lock.js';

/** How often a campaign looks whether the store answers, ms. */
const LOOK = 1_000;
/** The longest pause after a campaign that the store has refused for good, ms. */
const LONGEST_PAUSE = 30_000;

/** The group of elections in telemetry. */
const GROUP = 'election';

type Callback = (term: Term) => unknown;

/** The term of which a call is a part that runs outside of the callback. */
const termOfCall = new AsyncLocalStorage<HeldTerm>();

interface CallOfTerm<T> {
  readonly result: T;
  readonly end: () => void;
}

export interface CandidateContext {
  readonly inspect: () => Promise<LockState | null>;
  /** It runs, or its leadership is watched. */
  readonly onUse: (candidate: Candidate) => void;
}

/** This process in the election of a leader: it campaigns, leads and resigns by the plain lock of the election's name. */
export class Candidate implements Election {
  /** ms; undefined for the lease time of the module. */
  leaseTime: number | undefined;
  private readonly lock: PlainLock;
  private readonly changes = new LeaderChanges(() => {
    this.around.onUse(this);
    return this.isLeader();
  });
  private term: HeldTerm | undefined;
  /** Ends the present run: the signal of its caller has aborted, or the service shuts down. */
  private stop: AbortController | undefined;
  private running: Promise<void> | undefined;
  private isClosed = false;

  constructor(
    readonly name: string,
    private readonly client: LockClient,
    private readonly around: CandidateContext,
  ) {
    this.lock = new PlainLock(name, client);
  }

  get leader$(): Observable<boolean> {
    return this.changes.leader$;
  }

  get state(): Election['state'] {
    if (this.term !== undefined) return this.term.isPromised ? 'leading' : 'resigning';
    return this.running === undefined ? 'idle' : 'follower';
  }

  toJSON(): object {
    const { name, state } = this;
    return { name, state };
  }

  /** Another object of the same name would behave in the same way. */
  get isUnused(): boolean {
    return this.running === undefined && !this.changes.isObserved;
  }

  isLeader(): boolean {
    return this.term?.isPromised === true;
  }

  async leader(): Promise<{ label: string; term: number } | null> {
    const { holders, fencingToken = 0 } = (await this.around.inspect()) ?? { holders: [] };
    // A lock that is kept for the minHoldTime of its former owner has no leader.
    const holder = holders.find(({ owner }) => !isKept(owner));
    if (holder === undefined) return null;
    const client = holder.owner.replace(/:\d+$/, '');
    return { label: holder.label ?? client, term: fencingToken };
  }

  run(callback: Callback, options?: AnswerOptions): Promise<void> {
    const { name } = this;
    return new Promise((resolve) => {
      if (typeof callback !== 'function') {
        throw new LockConfigError('run', 'needs a callback', { value: callback, key: name });
      }
      const signal = signalOf(options, 'run');
      if (this.isClosed) throw new LockClosedError(name);
      if (this.running !== undefined) {
        const rule = `the election "${inQuotes(name)}" runs already: a process has one run at a time for each election`;
        throw new LockConfigError('run', rule, { key: name });
      }
      this.around.onUse(this);
      // Not in the scope of the caller: the term has a scope of its own.
      this.running = runOutsideScopes(() => this.campaigns(callback, signal)).finally(() => {
        this.running = undefined;
      });
      resolve(this.running);
    });
  }

  /**
   * Runs a call for which the callback of the present term waits.
   * @returns its result, and what is to be called when it has ended
   */
  partOfTerm<T>(run: () => T): CallOfTerm<T> {
    const { term } = this;
    if (term === undefined) return { result: run(), end: () => undefined };
    const scope = Scope.accompanying(currentScope(), term.scope);
    const end = (): void => {
      scope.end();
    };
    try {
      return { result: termOfCall.run(term, () => runInScope(scope, run)), end };
    } catch (error) {
      end();
      throw error;
    }
  }

  async resign(): Promise<void> {
    const { term } = this;
    if (term === undefined) return;
    const isInside = termOfCall.getStore() === term || currentScope()?.find(this.lock.identity) !== undefined;
    term.resign(resigned());
    // The term would wait for its callback, or for its call, which waits for this.
    if (!isInside) await term.over;
  }

  /** For the shutdown: ends the run. The lock stays until the callback has ended. Resolves when this process holds nothing. */
  async close(): Promise<void> {
    this.isClosed = true;
    const reason = new LockClosedError(this.name);
    this.stop?.abort(reason);
    const { term } = this;
    term?.tell(reason);
    this.changes.complete();
    await term?.over;
  }

  private async campaigns(callback: Callback, signal: AbortSignal | undefined): Promise<void> {
    const stop = (this.stop = new AbortController());
    const isStopped = (): boolean => stop.signal.aborted;
    const ignore =
      signal &&
      onAbort(signal, () => {
        stop.abort(signal.reason);
        this.term?.resign(signal.reason);
      });
    try {
      for (let isOver = false; !isOver && !isStopped();) {
        const term = await this.campaign(stop.signal);
        if (term === undefined) return;
        // The run was stopped by what heard of the grant.
        if (isStopped()) await term.end();
        else isOver = await this.lead(term, callback);
        // Where a queue decides, the others are first. Where waiters compete, they get time to hear of the release.
        if (!isOver && this.client.store.queues === undefined) await pause(POLL, stop.signal);
      }
    } finally {
      ignore?.();
      this.stop = undefined;
    }
  }

  /** Undefined where the run has been stopped. */
  private async campaign(signal: AbortSignal): Promise<HeldTerm | undefined> {
    const { client, lock, leaseTime, name } = this;
    const outage = this.watchStore();
    try {
      for (let failures = 0; !signal.aborted; failures++) {
        try {
          const scope = Scope.ofCallback(undefined);
          const call = callOf(client, {
            ...{ leaseTime, renew: true, signal, label: GROUP, into: scope },
            ...{ waitTime: Infinity, maxWaiting: Infinity, failFast: false },
          });
          const tenure = await client.acquire(name, call);
          // The store has forgotten it before the term could begin.
          if ('busy' in tenure || !tenure.held) continue;
          const lease = lock.begin(tenure, { ...call, inside: scope });
          // A listener to the event of the grant has released it, or has taken longer than the lease lasts. It may do the same
          // each time: on a store in memory that would leave the process no time for anything else.
          if (!lease.held) {
            void lease.release();
            await pause(POLL, signal);
            continue;
          }
          scope.lease = lease;
          return new HeldTerm(tenure, lease, scope, () => {
            this.changes.tell(false);
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

  /** @returns whether the callback has ended the run by itself */
  private async lead(term: HeldTerm, callback: Callback): Promise<boolean> {
    this.term = term;
    // So that other processes find the label of a leader at once.
    this.client.labels.keep();
    this.changes.tell(true);
    let failure: { readonly error: unknown } | undefined;
    try {
      // What has just heard of the term may have ended it.
      if (term.isPromised) {
        await refusalOfHandedOut(await runInScope(term.scope, async () => await callback(term)));
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
      this.warn(
        'term-error',
        `The work of a term of "${inQuotes(this.name)}" has failed after the end of the term: ${message}`,
      );
    }
    return false;
  }

  /** Tells once of a store that does not answer the campaign. */
  private watchStore(): { tell(error: unknown): void; end(): void } {
    let told = false;
    const tell = (error: unknown): void => {
      if (told) return;
      told = true;
      const { message } =
        isLockUnavailableError(error) && error.cause instanceof Error ? error.cause : (error as Error);
      this.warn(
        'election-unreachable',
        `Cannot campaign for "${inQuotes(this.name)}", trying until the store answers: ${message}`,
      );
    };
    let timer: NodeJS.Timeout | undefined;
    const look = (): void => {
      const failure = this.client.callers.failureOf(this.name);
      if (failure === undefined) told = false;
      else tell(failure);
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

  private warn(code: string, message: string): void {
    if (this.client.options.silencedWarnings.includes(code)) return;
    this.client.events.next({ type: 'warning', code, node: '', message });
  }
}

/** An error that the abort of the term has caused. By its shape: it may come from another realm, as in Jest. */
function isOfAbort(error: unknown, reason: unknown): boolean {
  if (error === reason || isLockError(error)) return true;
  const { name, cause } = (error ?? {}) as { name?: unknown; cause?: unknown };
  return name === 'AbortError' || (cause !== undefined && cause === reason);
}

/** Ends at once where the signal aborts. */
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
