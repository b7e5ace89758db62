import { createHash } from 'node:crypto';
import { LockConfigError, type LockUnavailableError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import { monotonicTime } from '../../runtime/runtime.js';
import { type Membership, gather, valuesOf } from './ballot.js';
import { conflictWith, namesOf, type Numbers, numbersOf, quarantineFor } from './charter.js';
import { type Amendment, type Charter, type Identity, type Member, quorumOf } from './member.js';

/** The last report of a member's server. */
interface Standing extends Pick<Identity, 'runId' | 'charter'> {
  /** The connection generation of the report. */
  readonly generation: number;
  /** ms by which the server's clock is ahead of `now()`. */
  readonly clock?: number;
  /** The permanent error that keeps this process from the charter, in place of all that. */
  readonly withheld?: LockUnavailableError;
}

/** Pause between two surveys, ms. Short at first, because another process may be founding the quorum, and then doubled. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 500;

/** Decides by the charters of the members which votes count. For the rules and their reasons see docs/design/redlock.md. */
export class Charters {
  /** ms; the longest hold that all members have acknowledged, which no hold may exceed. 0 if unknown. */
  allowed = 0;
  private readonly members: readonly Member[];
  private readonly standings: (Standing | undefined)[];
  /** The connection generations that this process has tried to read. */
  private readonly tried: number[] = [];
  /** The moment from which each vote should count, by the members' last answers. */
  private readonly votesFrom: number[] = [];
  /** The numbers of the charter when this process last saw a vote. */
  private remembered: Numbers | undefined;
  /** Why this service may not use the members. Cleared only when all have one charter: a member may lose the other one. */
  private refusal: string | undefined;
  private readonly names: string;
  /** Whether the names of this service have led to all members, so that it may restore the charter of any of them. */
  private isIntroduced = false;
  private surveying: Promise<void> | undefined;
  private nextSurvey = 0;
  private pause = SHORTEST_PAUSE;

  /** @param quorum with the lease time of the module, ms */
  constructor(private readonly quorum: Membership & { readonly leaseTime: number }) {
    this.members = quorum.members;
    this.standings = this.members.map(() => undefined);
    this.names = namesOf(this.members);
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
  votes(index: number): boolean {
    const { runId, charter } = this.current(index) ?? {};
    return runId !== undefined && charter?.run === runId && this.refusal === undefined;
  }

  /** The same, after a look at a member without a vote. */
  async mayVote(index: number): Promise<boolean> {
    // A survey under way may have begun before the member's connection was made.
    for (let surveys = 0; surveys < 2 && !this.votes(index); surveys++) await this.survey();
    return this.votes(index);
  }

  /** ms until the member's vote counts; undefined if its run is unknown. */
  quarantineOf(index: number): number | undefined {
    const standing = this.current(index);
    if (standing === undefined || this.votes(index)) return standing && 0;
    if (standing.runId === undefined) return Infinity;
    return Math.max(1, (this.votesFrom[index] ?? 0) - monotonicTime());
  }

  /** The reason why a member never votes: its user has no right to the charter. */
  withheldBy(index: number): LockUnavailableError | undefined {
    return this.current(index)?.withheld;
  }

  /**
   * Reads the reports of all members, and helps members without a vote to get one.
   * @param isRepeated whether to read reports again a moment after the last survey
   */
  async survey(isRepeated = false): Promise<void> {
    const isRead = this.members.every(
      (member, index) => member.isDown || this.tried[index] === member.generation,
    );
    const isSoon = isRead && !isRepeated && monotonicTime() < this.nextSurvey;
    if (this.surveying === undefined && isSoon) return;
    this.surveying ??= this.doSurvey().finally(() => {
      this.surveying = undefined;
      this.nextSurvey = monotonicTime() + this.pause;
      this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
    });
    await this.surveying;
  }

  private current(index: number): Standing | undefined {
    const standing = this.standings[index];
    return standing?.generation === this.members[index]?.generation ? standing : undefined;
  }

  private get told(): readonly Charter[] {
    return this.members.flatMap((_, index) => this.current(index)?.charter ?? []);
  }

  /** Asks all members that are not down. */
  private ask<T>(ask: (member: Member, index: number) => Promise<T>) {
    return gather(this.quorum, (member, index) => (member.isDown ? undefined : ask(member, index)));
  }

  private readAll() {
    return this.ask((member, index) => this.read(member, index));
  }

  /** @throws the member's error, or an error if the connection was lost meanwhile */
  private async read(member: Member, index: number): Promise<void> {
    const { generation } = member;
    this.tried[index] = generation;
    const { time, ...told } = await member.identify().catch(unlessWithheld);
    if (member.generation !== generation) throw new Error('the connection was lost meanwhile');
    if (this.standings[index]?.runId !== told.runId) {
      this.pause = SHORTEST_PAUSE;
      this.votesFrom[index] = monotonicTime() + quarantineFor(this.numbers?.longest ?? this.quorum.leaseTime);
    }
    this.standings[index] = { ...told, generation, ...(time !== undefined && { clock: time - now() }) };
    this.learn();
  }

  private learn(): void {
    const { members, told } = this;
    const id = this.remembered?.id ?? told[0]?.id;
    const strange = members.findIndex((_, index) => {
      const charter = this.current(index)?.charter;
      return charter !== undefined && (charter.size !== members.length || charter.id !== id);
    });
    this.refuse(strange, this.current(strange)?.charter, false);
    if (strange < 0 && told.length === members.length) this.refusal = undefined;
    const { numbers } = this;
    if (this.refusal !== undefined || numbers === undefined) return;
    this.allowed = Math.max(this.allowed, numbers.allowed);
    if (!members.some((_, index) => this.votes(index))) return;
    this.remembered = { ...numbers, longest: Math.max(numbers.longest, this.remembered?.longest ?? 0) };
    const runs = new Set(members.map((_, index) => this.current(index)?.runId));
    if (this.isIntroduced || told.length < members.length || runs.size < members.length) return;
    this.isIntroduced = true;
    if (told.every((charter) => charter.names.includes(this.names))) return;
    // This service may restore a charter after its next start, too.
    void this.ask((member) => member.amend(this.amendment(numbers)));
  }

  private refuse(index: number, charter: Charter | undefined, isEmpty: boolean): void {
    const node = this.members[index]?.node;
    if (node !== undefined && charter !== undefined)
      this.refusal = conflictWith(charter, this.members, node, isEmpty);
  }

  /** Whether an empty member that this service reaches is a member of the quorum. */
  private get isKnown(): boolean {
    const { told } = this;
    return this.isIntroduced || told.length === 0 || told.some(({ names }) => names.includes(this.names));
  }

  private amendment(numbers: Numbers): Amendment {
    return { size: this.members.length, names: this.isKnown ? this.names : undefined, ...numbers };
  }

  private async doSurvey(): Promise<void> {
    const indexes = [...this.members.keys()];
    await this.readAll();
    const first = [...this.standings];
    if (indexes.every((index) => this.votes(index))) return;
    // The second report of a member with a vote is newer than every run that the first round has found.
    await this.readAll();
    const present = indexes.filter((index) => {
      const { [index]: standing } = this.standings;
      const isRead = standing !== first[index] && standing?.generation === first[index]?.generation;
      return isRead && standing === this.current(index) && standing?.withheld === undefined;
    });
    const isOfThisRun = (index: number) => {
      const { runId, charter } = this.current(index) ?? {};
      return charter !== undefined && [charter.run, charter.quarantined].includes(runId);
    };
    const isInService = this.remembered !== undefined || indexes.some(isOfThisRun);
    if (this.refusal === undefined && !this.isKnown) {
      const empty = present.find((index) => this.current(index)?.charter === undefined);
      this.refuse(empty ?? -1, this.told[0], true);
    }
    if (this.refusal !== undefined) return;
    if (!isInService && present.length === indexes.length && (await this.found())) return;
    const voting = present.filter((index) => this.votes(index));
    const told = numbersOf(voting.flatMap((index) => this.current(index)?.charter ?? []));
    const numbers = told ?? this.greatest(isInService);
    const waiting = present.filter((index) => !this.votes(index));
    await Promise.all(waiting.map((index) => this.quarantine(index, numbers, isInService)));
  }

  /** The greatest numbers that the members and this process know, for members of which none has a vote. */
  private greatest(isInService: boolean): Numbers {
    const { leaseTime } = this.quorum;
    const known = numbersOf(this.remembered === undefined ? this.told : [...this.told, this.remembered]);
    const id = known?.id ?? createHash('sha1').update(this.names).digest('hex');
    const { longest = 0, allowed = 0 } = known ?? {};
    const first = isInService || allowed > 0 ? allowed : leaseTime;
    return { id, longest: Math.max(leaseTime, longest), allowed: first };
  }

  /** Founds the quorum if every member agrees that no member has had a charter in its present run. */
  private async found(): Promise<boolean> {
    const runs = this.members.map((_, index) => this.current(index)?.runId ?? '');
    if (runs.includes('')) return false;
    const { id, longest } = this.greatest(false);
    const proposal = `${id} ${String(longest)};`;
    // In sequence and in the same order for all services, so that the first member decides between two founders.
    for (const run of [...runs].sort()) {
      const member = this.members[runs.indexOf(run)];
      if (!(await member?.propose(id, run, proposal).catch(() => false))) return false;
    }
    const founding = { ...this.amendment({ id, longest, allowed: longest }), proposal };
    await this.ask((member, index) => member.amend({ ...founding, run: runs[index] }));
    await this.readAll();
    return true;
  }

  /** Gives a run its vote when a majority has known it for the time of the longest lease. */
  private async quarantine(index: number, numbers: Numbers, isInService: boolean): Promise<void> {
    const { [index]: member } = this.members;
    const run = this.current(index)?.runId;
    if (member === undefined || run === undefined) return;
    try {
      if (isInService) await member.amend({ ...this.amendment(numbers), quarantined: run });
      const times = valuesOf(await this.ask((witness) => witness.witness(run))).sort((a, b) => b - a);
      const since = times[quorumOf(this.members.length) - 1];
      if (since === undefined) return;
      const left = quarantineFor(numbers.longest) - since;
      this.votesFrom[index] = monotonicTime() + left;
      if (left > 0) return;
      await member.amend({ ...this.amendment(numbers), run });
      await this.read(member, index);
      if (this.votes(index)) void this.ask((witness) => witness.forget(run));
    } catch {
      // The next survey tries again.
    }
  }
}

function unlessWithheld(error: unknown) {
  if (!isLockUnavailableError(error) || !error.permanent) throw error;
  return { runId: undefined, time: undefined, charter: undefined, withheld: error };
}
