import { createHash } from 'node:crypto';
import { now } from '../../runtime/clock.js';
import { LockConfigError, type LockUnavailableError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { monotonicTime } from '../../runtime/runtime.js';
import { ANSWER_TIME, askAll } from './ask-all.js';
import { conflictOf, namesOf, type Numbers, numbersOf, quarantineFor, strangerOf } from './charter.js';
import { type Charter, type Identity, type Member, quorumOf } from './member.js';

/** The last report of a member's server. */
interface Standing extends Omit<Identity, 'time'> {
  /** The connection generation of the report. */
  readonly generation: number;
  /** ms by which the server's clock is ahead of `now()`. */
  readonly clock: number;
}

/** Pause between two surveys, ms. Short at first, because another process may be founding the quorum, and then doubled. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1_000;

/** Decides by the charters of the members which votes count. For the rules and their reasons see docs/design/redlock.md. */
export class Charters {
  /** ms; the longest hold that all members have acknowledged, which no hold may exceed. 0 if unknown. */
  allowed = 0;
  private readonly standings: (Standing | undefined)[];
  /** The permanent error, if any, that keeps this process from a member's charter. */
  private readonly withheld: (LockUnavailableError | undefined)[] = [];
  /** The moment from which each vote should count, by the members' last answers. */
  private readonly votesFrom: number[];
  /** The numbers of the charter when this process last saw a vote. */
  private remembered: Numbers | undefined;
  /**
   * The reason why this service may not use the members. Cleared only when all members have one charter, because a
   * member may lose the conflicting one.
   */
  private refusal: string | undefined;
  private readonly names: string;
  /**
   * Whether the service has reached all members by its names. From then on, it may restore the charter of a member that
   * has lost it.
   */
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

  /** The error if the members belong to another quorum. */
  get conflict(): LockConfigError | undefined {
    return this.refusal === undefined ? undefined : new LockConfigError('nodes', this.refusal);
  }

  /** The numbers of the quorum; undefined before a member has reported them. */
  get numbers(): Numbers | undefined {
    return numbersOf(this.told, quorumOf(this.members.length)) ?? this.remembered;
  }

  /** The median of the members' clocks, µs. Undefined if fewer than a majority have reported. */
  get time(): number | undefined {
    const clocks = this.standings.flatMap((standing) => standing?.clock ?? []).sort((a, b) => a - b);
    if (clocks.length < quorumOf(this.members.length)) return undefined;
    // The lower median, if the number of clocks is even.
    return ((clocks[Math.ceil(clocks.length / 2) - 1] ?? 0) + now()) * 1_000;
  }

  /** Whether the vote counts that a member gives over its present connection. */
  async mayVote(index: number): Promise<boolean> {
    if (this.current(index) === undefined) await this.look(index);
    if (!this.votes(index)) await this.survey();
    return this.votes(index);
  }

  /** ms until the member's vote counts; undefined if its run is unknown. */
  quarantineOf(index: number): number | undefined {
    const standing = this.current(index);
    if (standing === undefined) return this.withheld[index] === undefined ? undefined : Infinity;
    if (this.votes(index)) return 0;
    if (standing.runId === undefined) return Infinity;
    return Math.max(1, (this.votesFrom[index] ?? 0) - monotonicTime());
  }

  /** The reason why a member never votes: its user has no right to the charter. */
  withheldBy(index: number): Error | undefined {
    return this.refusalOf(index)?.cause as Error | undefined;
  }

  /** The same reason as an answer to an acquisition. */
  refusalOf(index: number): LockUnavailableError | undefined {
    return this.current(index) === undefined ? this.withheld[index] : undefined;
  }

  /** Reads one member's report, even if there is an earlier one. */
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

  /** Reads the reports of all members, and helps members without a vote to get one. Limits its own frequency. */
  async survey(): Promise<void> {
    if (this.surveying === undefined && monotonicTime() < this.nextSurvey) return;
    this.surveying ??= this.doSurvey().finally(() => {
      this.surveying = undefined;
      const time = monotonicTime();
      // A vote whose moment has passed could not be given then, so it does not hasten the next survey.
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

  /** @throws the member's error, or an error if the connection was lost meanwhile */
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

  /** Whether all members are different servers, and each has a charter of the quorum. */
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
    // The second report of a member with a vote is newer than every run that the first round has found.
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

  /**
   * The numbers of the members with a vote, which have forgotten nothing. Without such members, the greatest known
   * numbers.
   */
  private numbersFrom(voting: readonly number[], isInService: boolean): Numbers {
    const told = numbersOf(voting.flatMap((index) => this.current(index)?.charter ?? []));
    if (told !== undefined) return told;
    const found = [numbersOf(this.told), this.remembered].filter((numbers) => numbers !== undefined);
    const longest = Math.max(this.leaseTime, ...found.map((numbers) => numbers.longest));
    const allowed = Math.max(0, ...found.map((numbers) => numbers.allowed));
    const [{ id } = { id: createHash('sha1').update(this.names).digest('hex') }] = found;
    return { id, longest, allowed: allowed > 0 || isInService ? allowed : this.leaseTime };
  }

  /** Founds the quorum if every member agrees that no member has had a charter in its present run. */
  private async found(): Promise<boolean> {
    const { members, amendment } = this;
    const runs = members.map((_, index) => this.current(index)?.runId ?? '');
    if (runs.includes('')) return false;
    const { id, longest } = this.numbersFrom([], false);
    const proposal = `${id} ${String(longest)};`;
    // In sequence and in the same order for all services, so that the first member decides between two founders.
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

  /**
   * Keeps a run from voting until a majority has known it for the time of the longest lease, and then gives it its
   * vote.
   */
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
