import { now } from '../../lock.clock.js';
import { clearTimer, monotonicTime, setTimer, wallTime } from '../../lock.runtime.js';
import { aheadOf, middleOf } from './clocks.js';
import { type ClockReading, type Incarnation, type Member, quorumOf } from './member.js';

/** What is known of a member's server. */
interface Standing {
  /** The connection generation in which this was learned. */
  readonly generation: number;
  readonly runId: string | undefined;
  /** When this process first saw the member's present run, on the monotonic clock. */
  readonly seenAt: number;
  /** When that run began, as the member reports it. */
  readonly startedAt: number;
  /** The member's clock at that look, and this process's own clock. */
  readonly clock: ClockReading;
  readonly ownClock: number;
  /** How long this machine had been suspended by then, ms. `performance.now()` does not count that time. */
  readonly suspended: number;
  /** The leases longer than the module's that had been requested by then. */
  readonly longLeases: LongLeases;
  noted: boolean;
  /** The member's present run is its first in this quorum, so that it cannot have forgotten anything. */
  readonly founder: boolean;
}

/** Since when there are such leases, and until when. */
interface LongLeases {
  since: number;
  until: number;
}

/** ms of suspension of this machine, as far as it has been noticed. */
const suspendedSoFar = (): number => now() - monotonicTime();

/** The note of a member that is not a founder: no run has this id. */
const JOINED = '0';
/** How often in a row the process checks whether another process is just founding the quorum, and the pause between, ms. */
const LOOKS = 3;
const PAUSE = 20;
/** When the process looks again after that, ms. */
const RECESS = 1_000;
/** How long the process waits for members that have not answered, once a majority has, ms. */
const ANSWER_TIME = 250;

/**
 * Decides which votes count. A node that has restarted may have forgotten a lock that is still held, so it votes again only
 * when every lease from before must have ended. Servers report how long they have been running, by their wall clocks. The
 * time by which such a clock is ahead of the others does not count. After a lease the node votes in any case, because this
 * process itself has seen it run for that time. A node that does not report how long it has been running never votes.
 *
 * The nodes of a new quorum are young, too, and have nothing to forget. A process founds the quorum when it has looked at
 * every member twice, one round after the other, and each member was young and had no note. It leaves a note with the run id
 * on each member. The note outlives the youth of that run. By the note every process recognizes a founder, and a founder's
 * vote counts at once. A note is never replaced. A process in service may find another young member without a note, which
 * joined late or has restarted. That member gets a note as well. This note does not make it a founder, but says that the
 * quorum is in service.
 *
 * Why a founding does not meet an earlier lock: let a majority M have granted the lock. A member of M had a vote at that
 * time, so its run was old or had a note, and that is still true of that run. The founding process has seen neither. So if
 * it looked after the grant, it has seen another run. In the second round it did look after the grant if one member of M
 * restarted before the first round. If no member of M did, none has forgotten the lock. So every member of M has restarted,
 * and the other members are young and have no note either. Then all members have started within one lease, and no process in
 * service has reached one of them since: that cannot be distinguished from a new quorum.
 *
 * Nor does a founding meet a lock that is just being granted, for which a member votes as a founder and restarts before the
 * votes are counted. A founder counts only after a look that began when another member was known to have a note. The process
 * that finds the founder's next run looks at that other member after that, and sees the note.
 *
 * So a member that is silent, or has not been started, keeps the quorum from being founded: it might be the member that is
 * old or has a note. Each of the other members votes nevertheless when it is old enough, which takes one lease.
 */
export class RestartQuarantine {
  private readonly standings: (Standing | undefined)[];
  /**
   * What follows from the standings, until the next of them is learned: when each vote counts, and the clock in the middle.
   * Every acquisition asks for both.
   */
  private readonly votesFrom: (number | undefined)[] = [];
  private middle: number | undefined;
  private readonly looking = new Map<number, Promise<unknown>>();
  private readonly nextLook: number[];
  private founding: Promise<void> | undefined;
  /** This quorum has given out locks before. */
  private inService = false;
  /** The leases longer than the module's that this process has requested. */
  private readonly longLeases: LongLeases = { since: Infinity, until: -Infinity };

  constructor(
    private readonly members: readonly Member[],
    /** The lease time that every process asks for, ms. */
    private readonly leaseTime: number,
  ) {
    this.standings = members.map(() => undefined);
    this.nextLook = members.map(() => 0);
  }

  /**
   * A lease of this length is about to be requested. A run that starts after that may forget the lease. A run that exists
   * already will not.
   */
  learn(leaseTime: number): void {
    if (leaseTime <= this.leaseTime) return;
    const time = monotonicTime();
    const { longLeases } = this;
    if (longLeases.until < time) longLeases.since = time;
    longLeases.until = Math.max(longLeases.until, time + leaseTime);
  }

  /** Whether the vote counts that a member gives over its present connection. */
  async mayVote(index: number): Promise<boolean> {
    if (this.current(index) === undefined) await this.look(index);
    if (this.current(index) === undefined) return false;
    if (this.quarantineOf(index) === 0) return true;
    if (this.clocks.length < quorumOf(this.members.length)) {
      await this.awaitAnswers(0);
      if (this.quarantineOf(index) === 0) return true;
    }
    if (!this.inService) {
      this.founding ??= this.found().finally(() => {
        this.founding = undefined;
      });
      await this.founding;
    }
    if (this.quarantineOf(index) === 0) return true;
    for (let looks = 0; looks < LOOKS && monotonicTime() >= (this.nextLook[index] ?? 0); looks++) {
      await this.look(index);
      if (this.quarantineOf(index) === 0) return true;
      await new Promise<void>((resolve) => setTimer(resolve, PAUSE));
    }
    if (monotonicTime() < (this.nextLook[index] ?? 0)) return false;
    this.nextLook[index] = monotonicTime() + RECESS;
    await this.admit(index);
    return false;
  }

  /** ms until the member's vote counts; undefined while its run is not known. */
  quarantineOf(index: number): number | undefined {
    const standing = this.current(index);
    if (standing === undefined) return undefined;
    const votesFrom = (this.votesFrom[index] ??= this.votingOf(standing));
    const quarantine = Math.max(0, votesFrom - monotonicTime());
    if (quarantine > 0 && !standing.founder) return quarantine;
    this.inService = true;
    return 0;
  }

  /**
   * The one in the middle of the members' clocks, µs. Undefined while too few members have reported. The clocks have gone on
   * while this machine was suspended. Whether a vote counts depends on time that has certainly passed, and a suspension adds
   * nothing to that time.
   */
  get time(): number | undefined {
    this.middle ??= middleOf(
      this.standings.flatMap((standing) => {
        if (standing === undefined) return [];
        const { clock, suspended } = standing;
        return { least: clock.least - suspended, most: clock.most - suspended };
      }),
      this.members.length,
    );
    return this.middle === undefined ? undefined : (this.middle + now()) * 1_000;
  }

  private current(index: number): Standing | undefined {
    const standing = this.standings[index];
    return standing?.generation === this.members[index]?.generation ? standing : undefined;
  }

  private async look(index: number): Promise<void> {
    let looking = this.looking.get(index);
    if (looking === undefined) {
      looking = this.identify(index).finally(() => this.looking.delete(index));
      this.looking.set(index, looking);
    }
    await looking;
  }

  /** @returns whether the member has answered */
  private async identify(index: number): Promise<boolean> {
    const member = this.members[index];
    if (member === undefined) return false;
    const { generation } = member;
    const othersNoted = this.standings.some((standing, n) => n !== index && standing?.noted === true);
    let told: Incarnation;
    try {
      told = await member.identify();
    } catch {
      return false; // the run is not known, so the member does not vote
    }
    const { runId, noted } = told;
    const before = this.standings[index];
    const same = before !== undefined && runId !== undefined && before.runId === runId;
    if (before !== undefined && !same) this.inService = true;
    // One connection leads to one run, even where the server reports no run id.
    const seen =
      same || (runId === undefined && before?.runId === undefined && before?.generation === generation);
    const birth = seen ? before : this.birthOf(told, before !== undefined);
    const { seenAt, startedAt, clock, ownClock, suspended, longLeases } = birth;
    this.votesFrom.length = 0;
    this.middle = undefined;
    this.standings[index] = {
      generation,
      runId,
      seenAt,
      startedAt,
      clock,
      ownClock,
      suspended,
      longLeases,
      noted: noted !== undefined,
      founder: (runId !== undefined && noted === runId && othersNoted) || (same && before.founder),
    };
    // A run that follows another one is never a founder, so there is nothing to wait for.
    if (before !== undefined && !same) await this.admit(index);
    return true;
  }

  /** Tells processes that do not know the quorum yet that a young member belongs to a quorum in service. */
  private async admit(index: number): Promise<void> {
    const standing = this.current(index);
    if (!this.inService || standing === undefined || standing.noted || this.quarantineOf(index) === 0) return;
    try {
      await this.members[index]?.note(JOINED, 2 * this.leaseTime);
      standing.noted = true;
    } catch {
      // The next look tries again.
    }
  }

  private birthOf({ runId, uptime, clock }: Incarnation, known: boolean) {
    const seenAt = monotonicTime();
    // A run that follows another one may be old: it may be the run of a replica, which has missed the last writes.
    const replaced = known && runId !== undefined;
    const startedAt = uptime === undefined ? Infinity : replaced ? seenAt : seenAt - uptime;
    const ownClock = wallTime() - seenAt;
    const suspended = suspendedSoFar();
    return { seenAt, startedAt, clock, ownClock, suspended, longLeases: { ...this.longLeases } };
  }

  /** When every lease that the member may have forgotten has ended, on this process's monotonic clock. */
  private votingOf({ seenAt, startedAt, clock, ownClock, longLeases }: Standing): number {
    if (startedAt === Infinity) return Infinity;
    const ahead = aheadOf(clock, ownClock, this.clocks, this.members.length) ?? Infinity;
    const bornAt = Math.min(startedAt + ahead, seenAt);
    const { since, until } = longLeases;
    return Math.max(bornAt + this.leaseTime, bornAt > since ? until : 0);
  }

  private get clocks(): readonly ClockReading[] {
    return this.standings.flatMap((standing) => standing?.clock ?? []);
  }

  /** Makes all members founders, if two rounds find nothing that speaks against it. */
  private async found(): Promise<void> {
    await this.awaitAnswers(ANSWER_TIME);
    // What was learned before may be out of date: another process may have founded the quorum since, and given out locks.
    if (this.unproven() === undefined) return;
    if (!(await Promise.all(this.members.map((_, index) => this.identify(index)))).every(Boolean)) return;
    const unproven = this.unproven();
    if (unproven === undefined) return;
    await Promise.all(unproven.map((standing, index) => this.enrol(index, standing)));
    // Another process may have been faster. Then its notes count.
    await Promise.all(this.members.map((_, index) => this.identify(index)));
  }

  /** @returns all members, if each of them is young and has no note */
  private unproven(): readonly Standing[] | undefined {
    const standings = this.members.flatMap((_, index) => this.current(index) ?? []);
    const proven = this.members.some((_, index) => this.quarantineOf(index) === 0);
    if (proven || standings.some((standing) => standing.noted || this.maybeOld(standing)))
      this.inService = true;
    return this.inService || standings.length < this.members.length ? undefined : standings;
  }

  /**
   * By the member's report, which may be wrong. Where it reports a start after `seenAt`, its clock has been set back, so
   * that it may be of any age.
   */
  private maybeOld({ startedAt, seenAt }: Standing): boolean {
    return startedAt !== Infinity && (startedAt > seenAt || startedAt + this.leaseTime <= monotonicTime());
  }

  private async enrol(index: number, standing: Standing): Promise<void> {
    if (standing.runId === undefined) return;
    try {
      await this.members[index]?.note(standing.runId, 2 * this.leaseTime);
      standing.noted = true;
    } catch {
      // The member stays in quarantine.
    }
  }

  /** Looks at all members, until all have answered, or until `time` ms after a majority has answered. */
  private awaitAnswers(time: number): Promise<void> {
    return new Promise((resolve) => {
      let answered = 0;
      let timer: NodeJS.Timeout | undefined;
      const looks = this.members.map(async (_, index) => {
        if (this.current(index) === undefined) await this.look(index);
        if (this.current(index) !== undefined && ++answered === quorumOf(this.members.length)) {
          timer = setTimer(resolve, time);
        }
      });
      void Promise.all(looks).then(() => {
        clearTimer(timer);
        resolve();
      });
    });
  }
}
