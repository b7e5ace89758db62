import { createHash } from 'node:crypto';
import { now } from '../../runtime/clock.js';
import { isLockUnavailableError, LockConfigError, type LockUnavailableError } from '../../api/errors.js';
import { monotonicTime } from '../../runtime/runtime.js';
import { ANSWER_TIME, askAll } from './ask-all.js';
import { conflictOf, namesOf, type Numbers, numbersOf, quarantineFor, strangerOf } from './charter.js';
import { type Charter, type Identity, type Member, quorumOf } from './member.js';

/** What is known of a member's server. */
interface Standing extends Omit<Identity, 'time'> {
  /** The connection generation in which this was learned. */
  readonly generation: number;
  /** By how many ms its clock is ahead of `now()`. */
  readonly clock: number;
}

/** The pause between two surveys, ms: short at first, because another process may just be founding the quorum, then doubled. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1_000;

/** Decides which votes count, by the charters of the members. docs/design/redlock.md has the rules and their reasons. */
export class Charters {
  /** ms: all members have acknowledged holds of this length. No hold may last longer. 0 while that is not known. */
  allowed = 0;
  private readonly standings: (Standing | undefined)[];
  /** The error with which a member keeps this process from its charter, for as long as it does. */
  private readonly withheld: (LockUnavailableError | undefined)[] = [];
  /** When each vote is expected to count, by the last answers of the members. */
  private readonly votesFrom: number[];
  /** The charter under which this process has last seen a vote. */
  private remembered: Numbers | undefined;
  /** Why this service may not use the members. Stays until all of them have one charter: a member may lose the one that differs. */
  private refusal: string | undefined;
  private readonly names: string;
  /** The names of this service have led to all members: from now on it may give members that have lost it their charter. */
  private isIntroduced = false;
  private readonly looking = new Map<number, Promise<unknown>>();
  private surveying: Promise<void> | undefined;
  private nextSurvey = 0;
  private pause = SHORTEST_PAUSE;

  constructor(
    private readonly members: readonly Member[],
    /** The lease time of the module, ms. */
    private readonly leaseTime: number,
  ) {
    this.standings = members.map(() => undefined);
    this.votesFrom = members.map(() => 0);
    this.names = namesOf(members);
  }

  /** Why this service may not use the members: they belong to another quorum. */
  get conflict(): LockConfigError | undefined {
    return this.refusal === undefined ? undefined : new LockConfigError('nodes', this.refusal);
  }

  /** The numbers of the quorum; undefined while no member has told them. */
  get numbers(): Numbers | undefined {
    return numbersOf(this.told, quorumOf(this.members.length)) ?? this.remembered;
  }

  /** The one in the middle of the members' clocks, µs. Undefined while too few members have reported. */
  get time(): number | undefined {
    const clocks = this.standings.flatMap((standing) => standing?.clock ?? []).sort((a, b) => a - b);
    if (clocks.length < quorumOf(this.members.length)) return undefined;
    // For an even number of clocks: the earlier one of the two in the middle.
    return ((clocks[Math.ceil(clocks.length / 2) - 1] ?? 0) + now()) * 1_000;
  }

  /** Whether the vote counts that a member gives over its present connection. */
  async mayVote(index: number): Promise<boolean> {
    if (this.current(index) === undefined) await this.look(index);
    if (!this.votes(index)) await this.survey();
    return this.votes(index);
  }

  /** ms until the member's vote counts; undefined while its run is not known. */
  quarantineOf(index: number): number | undefined {
    const standing = this.current(index);
    if (standing === undefined) return this.withheld[index] === undefined ? undefined : Infinity;
    if (this.votes(index)) return 0;
    if (standing.runId === undefined) return Infinity;
    return Math.max(1, (this.votesFrom[index] ?? 0) - monotonicTime());
  }

  /** Why a member never votes: its user has no right to the charter. */
  withheldBy(index: number): Error | undefined {
    return this.refusalOf(index)?.cause as Error | undefined;
  }

  /** The same, as the answer to an acquisition. */
  refusalOf(index: number): LockUnavailableError | undefined {
    return this.current(index) === undefined ? this.withheld[index] : undefined;
  }

  /** Looks at one member, also if it has been looked at before. */
  async look(index: number): Promise<void> {
    let looking = this.looking.get(index);
    if (looking === undefined) {
      looking = this.identify(index)
        .catch(() => undefined)
        .finally(() => this.looking.delete(index));
      this.looking.set(index, looking);
    }
    await looking;
  }

  /** Looks at all members, and does what it can for those without a vote. Never so often that it would be a load. */
  async survey(): Promise<void> {
    if (this.surveying === undefined && monotonicTime() < this.nextSurvey) return;
    this.surveying ??= this.doSurvey().finally(() => {
      this.surveying = undefined;
      const time = monotonicTime();
      // A moment that has passed is one at which the vote could not be given.
      const votesFrom = this.votesFrom.filter((from, index) => from > time && !this.votes(index));
      this.nextSurvey = Math.min(time + this.pause, ...votesFrom);
      this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
    });
    await this.surveying;
  }

  private current(index: number): Standing | undefined {
    const standing = this.standings[index];
    return standing?.generation === this.members[index]?.generation ? standing : undefined;
  }

  private votes(index: number): boolean {
    const standing = this.current(index);
    if (standing?.runId === undefined || this.refusal !== undefined) return false;
    return standing.charter?.run === standing.runId;
  }

  private get told(): readonly Charter[] {
    return this.members.flatMap((_, index) => this.current(index)?.charter ?? []);
  }

  /** @throws what the member throws, also where the connection has been lost meanwhile */
  private async identify(index: number): Promise<void> {
    const member = this.members[index];
    if (member === undefined) return;
    const { generation } = member;
    const { time, ...told } = await member.identify().catch((error: unknown) => {
      this.withheld[index] = isLockUnavailableError(error) && error.permanent ? error : undefined;
      throw error;
    });
    this.withheld[index] = undefined;
    if (member.generation !== generation) throw new Error('the connection was lost meanwhile');
    if (this.standings[index]?.runId !== told.runId) {
      this.pause = SHORTEST_PAUSE;
      this.nextSurvey = 0;
      this.votesFrom[index] = monotonicTime() + quarantineFor(this.numbers?.longest ?? this.leaseTime);
    }
    this.standings[index] = { ...told, generation, clock: time - now() };
    this.learned();
  }

  private learned(): void {
    const { members } = this;
    const chartered = members.flatMap((member, index) => {
      const charter = this.current(index)?.charter;
      return charter === undefined ? [] : [[member.node, charter] as const];
    });
    const conflict = conflictOf(chartered, members, this.remembered?.id);
    if (conflict !== undefined) this.refusal = conflict;
    else if (chartered.length === members.length) this.refusal = undefined;
    const { numbers } = this;
    if (this.refusal !== undefined || numbers === undefined) return;
    this.allowed = Math.max(this.allowed, numbers.allowed);
    if (!members.some((_, index) => this.votes(index))) return;
    this.remembered = { ...numbers, longest: Math.max(numbers.longest, this.remembered?.longest ?? 0) };
    if (this.isIntroduced || !this.isWhole) return;
    this.isIntroduced = true;
    const { told, names } = this;
    if (!told.every((charter) => charter.names.includes(names))) void this.amendAll({ ...numbers, names });
  }

  /** Each member is another server, and has a charter of the quorum. */
  private get isWhole(): boolean {
    const runs = new Set(this.members.map((_, index) => this.current(index)?.runId));
    return this.told.length === this.members.length && runs.size === this.members.length;
  }

  /** Whether an empty member that this service reaches is a member of the quorum. */
  private get isKnown(): boolean {
    const { told: charters, names } = this;
    return (
      this.isIntroduced || charters.length === 0 || charters.some((charter) => charter.names.includes(names))
    );
  }

  private get amendment() {
    return { size: this.members.length, names: this.isKnown ? this.names : undefined };
  }

  private async amendAll(numbers: Numbers & { names?: string }): Promise<void> {
    await askAll(this.members, (member) => member.amend({ ...this.amendment, ...numbers }), ANSWER_TIME);
  }

  private async doSurvey(): Promise<void> {
    const { members } = this;
    const round = () => askAll(members, (_, index) => this.identify(index), ANSWER_TIME);
    await round();
    const first = [...this.standings];
    if (members.every((_, index) => this.votes(index))) return;
    // What the second round reads from members with a vote is younger than each run that the first round has found.
    await round();
    const indexes = [...members.keys()];
    const present = indexes.filter((index) => {
      const standing = this.current(index);
      return standing !== first[index] && standing?.generation === first[index]?.generation;
    });
    const isOfThisRun = (index: number) => {
      const { runId, charter } = this.current(index) ?? {};
      return charter !== undefined && [charter.run, charter.quarantined].includes(runId);
    };
    const isInService = this.remembered !== undefined || indexes.some(isOfThisRun);
    this.refusal ??= this.strangerAmong(present);
    if (this.refusal !== undefined) return;
    if (!isInService && present.length === members.length && (await this.found())) return;
    const numbers = this.numbersFrom(
      present.filter((index) => this.votes(index)),
      isInService,
    );
    const waiting = present.filter((index) => !this.votes(index));
    await Promise.all(waiting.map((index) => this.quarantine(index, numbers, isInService)));
  }

  private strangerAmong(present: readonly number[]): string | undefined {
    const [known] = this.told;
    if (known === undefined || this.isKnown) return undefined;
    const index = present.find((one) => this.current(one) && this.current(one)?.charter === undefined);
    return index === undefined ? undefined : strangerOf(this.members[index]?.node ?? '', known, this.members);
  }

  /** The numbers of the members with a vote, which have forgotten nothing. Without them, the greatest that there are. */
  private numbersFrom(voting: readonly number[], isInService: boolean): Numbers {
    const told = numbersOf(voting.flatMap((index) => this.current(index)?.charter ?? []));
    if (told !== undefined) return told;
    const found = [numbersOf(this.told), this.remembered].filter((numbers) => numbers !== undefined);
    const longest = Math.max(this.leaseTime, ...found.map((numbers) => numbers.longest));
    const allowed = Math.max(0, ...found.map((numbers) => numbers.allowed));
    const [{ id } = { id: createHash('sha1').update(this.names).digest('hex') }] = found;
    return { id, longest, allowed: allowed > 0 || isInService ? allowed : this.leaseTime };
  }

  /** Founds the quorum if every member agrees: none of them has been chartered in its present run. */
  private async found(): Promise<boolean> {
    const { members, amendment } = this;
    const runs = members.map((_, index) => this.current(index)?.runId ?? '');
    if (runs.includes('')) return false;
    const { id, longest } = this.numbersFrom([], false);
    const proposal = `${id} ${String(longest)};`;
    // One after the other, in the same order for all services: the first member decides between two founders.
    const inOrder = [...members.entries()].sort(([one], [other]) =>
      (runs[one] ?? '') < (runs[other] ?? '') ? -1 : 1,
    );
    for (const [index, member] of inOrder) {
      if (!(await member.propose(id, runs[index] ?? '', proposal).catch(() => false))) return false;
    }
    const founding = { ...amendment, id, longest, allowed: longest, proposal };
    await askAll(members, (member, index) => member.amend({ ...founding, run: runs[index] }), ANSWER_TIME);
    await askAll(members, (_, index) => this.identify(index), ANSWER_TIME);
    return true;
  }

  /** Keeps a run from voting until a majority has known it for the time of the longest lease. Then it gets its vote. */
  private async quarantine(index: number, numbers: Numbers, isInService: boolean): Promise<void> {
    const { members, amendment } = this;
    const member = members[index];
    const run = this.current(index)?.runId;
    if (member === undefined || run === undefined) return;
    try {
      if (isInService) await member.amend({ ...amendment, ...numbers, quarantined: run });
      const told = await askAll(members, (witness) => witness.witness(run), ANSWER_TIME);
      const times = told.filter((time) => time !== undefined).sort((a, b) => b - a);
      const since = times[quorumOf(members.length) - 1];
      if (since === undefined) return;
      const left = quarantineFor(numbers.longest) - since;
      this.votesFrom[index] = monotonicTime() + left;
      if (left > 0) return;
      await member.amend({ ...amendment, ...numbers, run });
      await this.identify(index);
      if (this.votes(index)) void askAll(members, (witness) => witness.forget(run), ANSWER_TIME);
    } catch {
      // The next survey tries again.
    }
  }
}
