import { AsyncLocalStorage } from 'node:async_hooks';
import type { Observable } from 'rxjs';
import { callersScope, currentScope, runInScope, runOutsideScopes, Scope } from '../../client/scope/scope.js';
import { signalOf } from '../../client/validation.js';
import { LockClosedError, LockConfigError } from '../../api/errors.js';
import type { AnswerOptions } from '../../api/options.js';
import { isKept } from '../../api/lock-state.js';
import { inQuotes } from '../../runtime/text.js';
import type { Election, Term } from '../../api/election.js';
import { ElectionRun } from './election-run.js';
import type { Elections } from './elections.js';
import { type HeldTerm, resigned } from './held-term.js';

/** The term for calls that belong to it but run outside its callback. */
const termOfCall = new AsyncLocalStorage<HeldTerm>();

interface CallOfTerm<T> {
  readonly result: T;
  readonly end: () => void;
}

/** The election of one name, as the code of this process uses it. */
export class Candidate implements Election {
  readonly leader$: Observable<boolean>;
  /** ms; undefined for the module's lease time. */
  leaseTime: number | undefined;

  constructor(
    readonly name: string,
    private readonly elections: Elections,
  ) {
    this.leader$ = elections.news.of(name, () => this.isLeader());
  }

  get state(): Election['state'] {
    return this.present?.state ?? 'idle';
  }

  toJSON(): object {
    const { name, state } = this;
    return { name, state };
  }

  isLeader(): boolean {
    return this.present?.term?.isPromised === true;
  }

  async leader(): Promise<{ label: string; term: number } | null> {
    const { holders, fencingToken = 0 } = (await this.elections.inspect(this.name)) ?? { holders: [] };
    // A lock that the store keeps for its former owner's minHoldTime has no leader.
    const holder = holders.find(({ owner }) => !isKept(owner));
    if (holder === undefined) return null;
    const client = holder.owner.replace(/:\d+$/, '');
    return { label: holder.label ?? client, term: fencingToken };
  }

  run(callback: (term: Term) => unknown, options?: AnswerOptions): Promise<void> {
    const { name, elections, leaseTime } = this;
    const { client, news, runs } = elections;
    return new Promise((resolve) => {
      if (typeof callback !== 'function') {
        throw new LockConfigError('run', 'needs a callback', { value: callback, key: name });
      }
      const signal = signalOf(options, 'run');
      if (elections.isClosed) throw new LockClosedError(name);
      if (runs.has(name)) {
        const rule = `the election "${inQuotes(name)}" runs already: a process has one run at a time for each election`;
        throw new LockConfigError('run', rule, { key: name });
      }
      const run = new ElectionRun(client, news, name, leaseTime, callback);
      runs.set(name, run);
      // Outside the scope of the caller, because each term has its own scope.
      const over = runOutsideScopes(() => run.untilOver(signal)).finally(() => runs.delete(name));
      resolve(over);
    });
  }

  /**
   * Runs a call that the callback of the present term waits for.
   * @returns the result of the call, and a function to call at its end
   */
  partOfTerm<T>(run: () => T): CallOfTerm<T> {
    const term = this.present?.term;
    if (term === undefined) return { result: run(), end: () => undefined };
    const scope = Scope.accompanying(callersScope(), term.scope);
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
    const { name, elections } = this;
    const term = this.present?.term;
    if (term === undefined) return;
    const lock = { name, clientId: elections.client.id };
    const isInside = termOfCall.getStore() === term || currentScope()?.isUnderLock(lock) === true;
    term.resign(resigned());
    // A wait here would never end: the term waits for its callback, or for this call.
    if (!isInside) await term.over;
  }

  private get present(): ElectionRun | undefined {
    return this.elections.runs.get(this.name);
  }
}
