import { createHash } from 'node:crypto';
import { LockConfigError, type LockUnavailableError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import { monotonicTime, setTimer } from '../../runtime/runtime.js';
import { gather } from './ballot.js';
import type { Change, Charter, Member, Numbers, Report } from './member.js';
import type { Quorum } from './quorum.js';

/** The last report of a member's server, over the connection of that generation. */
interface Standing {
  readonly generation: number;
  readonly runId?: string | undefined;
  readonly charter?: Charter | undefined;
  /** ms by which the server's clock is ahead of `now()`. */
  readonly clock?: number;
  /** The permanent error that keeps this process from the charter, in place of all that. */
  readonly withheld?: LockUnavailableError;
}

/** Pause between two surveys, ms. Short at first and waited for: another process may be founding the quorum. Then doubled. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 500;

/** Decides by the charters of the members which votes count. For the rules and their reasons see docs/design/redlock.md. */
export class Charters {
  private readonly standings: (Standing | undefined)[] = [];
  /** ms by which the median of the members' clocks is ahead of `now()`. */
  private clock: number | undefined;
  /** The numbers of all members with a vote that this process has seen. Undefined before the first such member. */
  numbers: Numbers | undefined;
  /** Why this service may not use the members. Cleared only when all have one charter: a member may lose the other one. */
  conflict: LockConfigError | undefined;
  private readonly names: string;
  /** Whether the names of this service have led to all members, so that it may restore the charter of any of them. */
  private isIntroduced = false;
  private surveying: Promise<void> | undefined;
  private surveyedConnections = '';
  private nextSurvey = 0;
  private pause = SHORTEST_PAUSE;

  constructor(private readonly quorum: Quorum) {
    this.names = [...quorum.members.map(({ node }) => node)].sort().join(' ');
  }

  /** ms; the longest hold that all members have acknowledged, which no hold may exceed. 0 if unknown. */
  get allowed(): number {
    return this.numbers?.allowed ?? 0;
  }

  /** The median of the members' clocks, µs. Undefined if fewer than a majority have reported. */
  get time(): number | undefined {
    return this.clock === undefined ? undefined : (this.clock + now()) * 1_000;
  }

  /** Whether the vote counts that a member gives over its present connection. */
  votes(index: number): boolean {
    const { runId, charter } = this.current(index) ?? {};
    return runId !== undefined && charter?.run === runId && this.conflict === undefined;
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
    const longest = this.numbers?.longest ?? this.quorum.leaseTime;
    return Math.max(1, quarantineFor(longest) - (this.ageOf(standing.runId) ?? 0));
  }

  /** ms for which a majority of the members has known a run. Undefined if it does not know the run. */
  private ageOf(run: string, told = this.told): number | undefined {
    const ages = told.flatMap(({ known }) => known.get(run) ?? []);
    return sharedBy(this.quorum.needed, ages);
  }

  /** Reads the reports of all members, and helps members without a vote to get one. By default, pauses after a survey. */
  async survey(pauses = true): Promise<void> {
    const reached = this.quorum.members.map(({ isDown, generation }) => !isDown && generation).join();
    const isPause = pauses && reached === this.surveyedConnections;
    const rest = isPause ? this.nextSurvey - monotonicTime() : 0;
    if (this.surveying === undefined && rest <= 2 * SHORTEST_PAUSE) {
      this.surveyedConnections = reached;
      this.surveying = this.doSurvey(rest).finally(() => {
        this.surveying = undefined;
        this.nextSurvey = monotonicTime() + this.pause;
        this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
      });
    }
    await this.surveying;
  }

  remember(numbers: readonly Numbers[]): void {
    this.numbers = numbersOf(this.numbers === undefined ? numbers : [this.numbers, ...numbers]);
  }

  current(index: number): Standing | undefined {
    const standing = this.standings[index];
    return standing?.generation === this.quorum.members[index]?.generation ? standing : undefined;
  }

  /** The charter of a member, if it was written in the member's present run. */
  private present(index: number): Charter | undefined {
    const { runId, charter } = this.current(index) ?? {};
    return runId !== undefined && [charter?.run, charter?.quarantined].includes(runId) ? charter : undefined;
  }

  private get told(): readonly Charter[] {
    return this.quorum.members.flatMap((_, index) => this.current(index)?.charter ?? []);
  }

  private async read(member: Member, index: number): Promise<void> {
    const { generation } = member;
    try {
      const [runId, report] = await Promise.all([member.run(), member.charter()]);
      this.note(index, { generation, runId, ...dated(report) });
    } catch (error) {
      if (!isLockUnavailableError(error) || !error.permanent) throw error;
      this.note(index, { generation, withheld: error });
    }
  }

  /** Changes the charter of a member in the run that it has reported. After an error, the next survey tries again. */
  private async write(index: number, change: Change): Promise<Charter | undefined> {
    const standing = this.current(index);
    if (standing === undefined) return undefined;
    const report = await this.quorum.members[index]?.charter(change).catch(() => undefined);
    return report && this.note(index, { ...standing, ...dated(report) });
  }

  /** @returns the charter; undefined if the connection was lost meanwhile, because its member may have restarted */
  private note(index: number, standing: Standing): Charter | undefined {
    if (this.quorum.members[index]?.generation !== standing.generation) return undefined;
    if (this.standings[index]?.runId !== standing.runId) this.pause = SHORTEST_PAUSE;
    this.standings[index] = standing;
    const clocks = this.standings.flatMap((each) => each?.clock ?? []).sort((a, b) => a - b);
    this.clock = clocks.length < this.quorum.needed ? undefined : clocks[Math.ceil(clocks.length / 2) - 1];
    this.learn();
    return standing.charter;
  }

  private learn(): void {
    const { quorum, told } = this;
    const { members } = quorum;
    const id = this.numbers?.id ?? told[0]?.id;
    const strange = members.findIndex((_, index) => {
      const charter = this.current(index)?.charter;
      return charter !== undefined && (charter.size !== members.length || charter.id !== id);
    });
    this.refuse(strange);
    if (strange < 0 && told.length === members.length) this.conflict = undefined;
    this.remember(members.flatMap((_, index) => (this.votes(index) ? (this.present(index) ?? []) : [])));
    const runs = new Set(members.map((_, index) => this.current(index)?.runId));
    const isWhole = told.length === members.length && runs.size === members.length;
    if (this.isIntroduced || !isWhole || this.conflict !== undefined || this.numbers === undefined) return;
    this.isIntroduced = true;
    if (told.every((charter) => charter.names.includes(this.names))) return;
    // This service may restore a charter after its next start, too.
    const change = this.change(this.numbers.id, this.numbers.longest);
    void gather(quorum, (member) => member.charter(change));
  }

  /** Refuses this service, because a member has the charter of another set of members, or none beside others. */
  private refuse(index = -1): void {
    const { members } = this.quorum;
    const node = members[index]?.node;
    const own = this.current(index)?.charter;
    const charter = own ?? this.told[0];
    if (node === undefined || charter === undefined) return;
    const which = own === undefined ? 'no' : 'the';
    this.conflict = new LockConfigError(
      'nodes',
      `are ${String(members.length)} nodes (${this.names}), but ${node} has ${which} charter of a quorum of ` +
        `${String(charter.size)} (${charter.names.join(', or ')}); let all services name the same nodes, or change the set as ` +
        'docs/guide/topologies/redlock.md says under "Change the nodes"',
    );
  }

  /** Whether an empty member that this service reaches is a member of the quorum. */
  private get isKnown(): boolean {
    const { told } = this;
    return this.isIntroduced || told.length === 0 || told.some(({ names }) => names.includes(this.names));
  }

  private change(id: string, longest: number): Change {
    return { id, size: this.quorum.members.length, longest, names: this.isKnown ? this.names : undefined };
  }

  private async doSurvey(rest: number): Promise<void> {
    if (rest > 0) await new Promise<void>((resolve) => setTimer(resolve, rest));
    const indexes = [...this.quorum.members.keys()];
    const readAll = () =>
      gather(this.quorum, (member, index) => (member.isDown ? undefined : this.read(member, index)));
    await readAll();
    const first = [...this.standings];
    if (indexes.every((index) => this.votes(index))) return;
    // The second report of a member with a vote is newer than every run that the first round has found.
    await readAll();
    const reached = indexes.filter((index) => {
      const standing = this.current(index);
      const isRead = standing !== first[index] && standing?.generation === first[index]?.generation;
      return isRead && standing?.runId !== undefined;
    });
    if (this.conflict === undefined && !this.isKnown)
      this.refuse(reached.find((index) => this.current(index)?.charter === undefined));
    if (this.conflict === undefined) await this.charter(reached);
  }

  /** Charters the members without a vote: by rule 2, or by rule 3 if no process is known to be in service. */
  private async charter(reached: readonly number[]): Promise<void> {
    const { members, needed, leaseTime } = this.quorum;
    const present = reached.flatMap((index) => this.present(index) ?? []);
    const service = numbersOf(this.numbers === undefined ? present : [...present, this.numbers]);
    if (service === undefined && reached.length < needed) return;
    const id = service?.id ?? this.told[0]?.id ?? createHash('sha1').update(this.names).digest('hex');
    const change = this.change(id, service?.longest ?? leaseTime);
    const runOf = (index: number) => this.current(index)?.runId ?? '';
    // In the same order for all services, so that the first member decides between two founders.
    const inOrder = [...reached].sort((a, b) => (runOf(a) < runOf(b) ? -1 : 1));
    const waiting = inOrder.filter((index) => !this.votes(index));
    const known = waiting.map(runOf);
    const told: Charter[] = [];
    for (const index of inOrder) {
      const run = runOf(index);
      const claim = { claim: { run, allowed: leaseTime } };
      const mark = service === undefined ? claim : { quarantined: run, allowed: service.allowed };
      const charter = await this.write(index, { ...change, ...(waiting.includes(index) && mark), known });
      if (charter === undefined) continue;
      // Another process was first.
      if (charter.id !== id || (service === undefined && this.present(index) !== undefined)) return;
      told.push(charter);
    }
    const longest = Math.max(change.longest, ...told.map((charter) => charter.longest));
    const claims = told.flatMap(({ claim }) => claim?.allowed ?? []);
    const allowed = service?.allowed ?? sharedBy(needed, claims);
    const isNew = service === undefined && told.length === members.length;
    const writing = waiting.map(async (index) => {
      const run = runOf(index);
      const age = this.ageOf(run, told);
      if (age === undefined || allowed === undefined) return;
      const left = isNew ? 0 : quarantineFor(longest) - age;
      if (left <= 0) await this.write(index, { ...this.change(id, longest), run, allowed });
    });
    await Promise.all(writing);
  }
}

const dated = ({ time, charter }: Report) => ({ charter, clock: time - now() });

function numbersOf(charters: readonly Numbers[]): Numbers | undefined {
  const [first] = charters;
  if (first === undefined) return undefined;
  const longest = Math.max(...charters.map((charter) => charter.longest));
  return { id: first.id, longest, allowed: Math.max(...charters.map(({ allowed }) => allowed)) };
}

/** ms for which a majority of the members must have known a run before it may get a vote. */
const quarantineFor = (longest: number): number => longest * 1.01 + 2;

/** The value that so many have at least. Undefined if there are fewer values. */
const sharedBy = (count: number, values: readonly number[]): number | undefined =>
  [...values].sort((a, b) => b - a)[count - 1];
