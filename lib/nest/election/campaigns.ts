import { Logger } from '@nestjs/common';
import { idleTimerAt, now } from '../../client/holding/deadline.js';
import { isThenable, refusalOfHandedOut, settled } from '../../client/holding/late-result.js';
import { onAbort } from '../../client/waiting/on-abort.js';
import { runOutsideScopes } from '../../client/scope/scope.js';
import { LockConfigError } from '../../api/errors.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { inQuotes } from '../../runtime/text.js';
import type { Candidate } from '../../locks/election/candidate.js';
import type { Election, ElectionOptions, Term } from '../../api/election.js';
import { runUnlocked } from '../decorator/pass-through.js';

/** The pause after work that has failed, ms; doubled each time, up to the longest. Another process leads meanwhile. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

/** A method that runs while this process leads. */
export interface LeaderWork {
  /** For the log: `Feed.follow`. */
  readonly title: string;
  run(term: Term): unknown;
}

/** The part that an application has in one election, from its bootstrap to its shutdown. */
class Campaign {
  private readonly works: LeaderWork[] = [];
  /** The calls that have begun while this process led. The term lasts until they have ended. */
  private readonly calls = new Set<Promise<unknown>>();
  private isStarted = false;

  constructor(
    private readonly service: LockService,
    private readonly name: string,
    private readonly options: ElectionOptions,
  ) {}

  get election(): Election {
    return this.service.getElection(this.name, this.options);
  }

  add(work: LeaderWork): void {
    this.works.push(work);
  }

  /** Runs a call as a part of the present term. Undefined if this process does not lead. */
  call(run: () => unknown): unknown {
    // A double of the service has other elections.
    const election: Election & Partial<Pick<Candidate, 'partOfTerm'>> = this.election;
    if (!election.isLeader()) return undefined;
    if (election.partOfTerm === undefined) return run();
    const { result, end } = election.partOfTerm(run);
    if (!isThenable(result)) {
      void this.attach(Promise.resolve(result)).then(end);
      return result;
    }
    // One Promise for both: a query may begin its work each time that it is asked for its result.
    const outcome = Promise.resolve(result);
    void this.attach(outcome).then(end);
    return outcome;
  }

  start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    void runOutsideScopes(() => this.campaign());
  }

  /** If decorators take no locks: this process is the only one. */
  async lead(signal: AbortSignal): Promise<void> {
    const term = { name: this.name, number: 0, signal };
    await Promise.all(
      this.works.map((work) => runUnlocked(() => this.report(work, term, 'is not started again'))),
    );
  }

  /** The Promises in the result of a call, as without Promise.all, are a part of it. */
  private async attach(call: Promise<unknown>): Promise<void> {
    const work = call.then(settled, () => undefined);
    this.calls.add(work);
    await work;
    this.calls.delete(work);
  }

  private async campaign(): Promise<void> {
    for (let failures = 0; !this.isEnding(); failures++) {
      const failed = new AbortController();
      const pause = Math.min(FIRST_PAUSE * 2 ** Math.min(failures, 10), LONGEST_PAUSE);
      const begun = now();
      try {
        await this.election.run((term) => this.term(term, failed, pause), { signal: failed.signal });
      } catch (error) {
        this.log(`Cannot campaign for "${inQuotes(this.name)}", trying again in ${String(pause)} ms`, error);
      }
      if (now() - begun > 2 * LONGEST_PAUSE) failures = -1;
      if (!this.isEnding()) await new Promise<void>((resolve) => idleTimerAt(now() + pause, resolve));
    }
  }

  private isEnding(): boolean {
    return stateOf(this.service)?.isEnding() !== false;
  }

  private async term(term: Term, failed: AbortController, pause: number): Promise<void> {
    const { signal } = term;
    const told = new Promise<void>((resolve) => {
      onAbort(signal, () => {
        resolve();
      });
    });
    const works = this.works.map(async (work) => {
      const outcome = await this.report(work, term, `resigns, and campaigns again in ${String(pause)} ms`);
      if (outcome === 'failed') failed.abort();
    });
    // It leads for the decorated methods too, so the term goes on when its works are done.
    const outcomes = await Promise.allSettled([told, ...works]);
    while (this.calls.size > 0) await Promise.allSettled(this.calls);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  private async report(work: LeaderWork, term: Term, consequence: string): Promise<'done' | 'failed'> {
    try {
      await refusalOfHandedOut(await work.run(term), work.title);
      return 'done';
    } catch (error) {
      if (term.signal.aborted) throw error; // the election logs the important errors itself
      this.log(`@OnLeader on ${work.title} has failed in term ${String(term.number)}: ${consequence}`, error);
      return 'failed';
    }
  }

  private log(message: string, error: unknown): void {
    const { stack, message: reason } = error instanceof Error ? error : new Error(String(error));
    new Logger('Election').error(`${message}: ${reason}`, stack);
  }
}

/** The campaigns of the application that has a service. */
export class Campaigns {
  private readonly byName = new Map<string, { campaign: Campaign; options: ElectionOptions }>();
  private isStarted = false;
  private isBooted = false;

  constructor(private readonly service: LockService) {}

  /** @throws LockConfigError when the methods with `@OnLeader` have been called already: that of a later object never is */
  assertBooting(declared: string): void {
    if (!this.isBooted) return;
    const rule =
      'needs an object that Nest makes before the application starts: this one is made later, as by LazyModuleLoader or ' +
      'ModuleRef.create';
    throw new LockConfigError(declared, rule);
  }

  /** @throws LockConfigError if two decorators of one election differ in their lease time */
  of(name: string, { leaseTime }: ElectionOptions = {}): Campaign {
    const known = this.byName.get(name);
    const before = known?.options.leaseTime;
    if (known !== undefined && (leaseTime === undefined || leaseTime === before)) return known.campaign;
    if (before !== undefined || (known !== undefined && this.isStarted)) {
      const rule = `the decorators of the election "${inQuotes(name)}" must agree on it (others have: ${String(before)})`;
      throw new LockConfigError('leaseTime', rule, { value: leaseTime });
    }
    const options = known?.options ?? {};
    if (leaseTime !== undefined) options.leaseTime = leaseTime;
    const campaign = known?.campaign ?? new Campaign(this.service, name, options);
    if (known === undefined) {
      this.byName.set(name, { campaign, options });
      // A provider that Nest makes on demand, after the boot.
      if (this.isStarted) campaign.start();
    }
    return campaign;
  }

  start(): void {
    this.isStarted = true;
    this.isBooted = true;
    for (const { campaign } of this.byName.values()) campaign.start();
  }

  /** If decorators take no locks. */
  lead(signal: AbortSignal): void {
    this.isBooted = true;
    for (const { campaign } of this.byName.values()) void campaign.lead(signal).catch(() => undefined);
  }
}

/** Of all copies of this package: a decorator of one copy may get the service of another. */
const CAMPAIGNS = Symbol.for('nestjs-distributed-lock.campaigns');
const shared = globalThis as { [CAMPAIGNS]?: WeakMap<LockService, Campaigns> | undefined };
const ofServices = (shared[CAMPAIGNS] ??= new WeakMap<LockService, Campaigns>());

export function campaignsOf(service: LockService): Campaigns {
  const campaigns = ofServices.get(service) ?? new Campaigns(service);
  ofServices.set(service, campaigns);
  return campaigns;
}
