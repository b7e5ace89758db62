import { now } from '../../lock.clock.js';
import { aheadOf, middleOf, type ClockReading } from './clocks.js';
import { type Incarnation, type Member, quorumOf } from './member.js';

/** What is known of a member's server. */
interface Standing {
  /** The connection over which it was learned. */
  readonly generation: number;
  readonly runId: string | undefined;
  /** When this process first saw its present run, on the monotonic clock. */
  readonly seenAt: number;
  /** When that run began, by the member's word. */
  readonly startedAt: number;
  /** At that look, and this process's own one. */
  readonly clock: ClockReading;
  readonly ownClock: number;
  /** How long this machine had been suspended by then, ms, which that clock has missed. */
  readonly suspended: number;
  /** The leases beyond the usual that had been asked for by then. */
  readonly longLeases: LongLeases;
  noted: boolean;
  /** Its present run is its first in this quorum, so that there is nothing it could have forgotten. */
  readonly founder: boolean;
}

/** Since when there are any, and until when. */
interface LongLeases {
  since: number;
  until: number;
}

/** ms, as far as it has been noticed. */
const suspendedSoFar = (): number => now() - performance.now();

/** The note of a member that is no founder: no run has this id. */
const JOINED = '0';
/** How often in a row it is looked whether another process is just founding the quorum, and how soon, ms. */
const LOOKS = 3;
const PAUSE = 20;
/** When it is looked again after that, ms. */
const RECESS = 1_000;
/** How long members that have not answered are waited for, once a majority has, ms. */
const HEARING = 250;

/**
 * Says whose vote counts. A node that has restarted may have forgotten a lock that is still held, so it votes again only
 * when every lease from before must have ended. Servers tell for how long they run, by their wall clocks; the time by which
 * such a clock is ahead of the others does not count. After a lease it votes in any case: this process has seen that itself.
 *
 * The nodes of a new quorum are young, too, and have nothing to forget. A process founds the quorum when it has looked at
 * every member twice, one round after the other, and each was young and bore no note. It leaves a note with the run id
 * on each, which outlives the youth of that run: by it every process knows a founder, whose vote counts at once. A note is
 * never replaced. Any other young member without a note that a process in service finds (it joined late, or has restarted)
 * gets a note as well, which makes no founder of it but says that the quorum is in service.
 *
 * Why a founding does not meet a lock of before: let a majority M have granted it. A member of M had a vote at that time,
 * so its run was old or bore a note, and still does. The founding process has seen neither, so if it looked after
 * the grant, it has seen another run. It did look after the grant in the second round if one member of M restarted before
 * the first one; and if none did, none has forgotten the lock. So every member of M has restarted; the other members are
 * young and bear no note either. All members have started within one lease, then, and no process in service has reached
 * one of them since: that cannot be told from a new quorum.
 *
 * Nor does it meet a lock that is just being granted, for which a member votes as a founder and restarts before the votes
 * are counted. A founder counts only after a look that began when another member was known to bear a note. The
 * process that finds the next run of the former looks at the latter after that, and sees the note.
 *
 * So a member that is silent, or has not been started, keeps the quorum from being founded: it might be the one that is old
 * or bears a note. The others vote nevertheless when they are old enough, which takes one lease.
 */
export class RestartQuarantine {
  private readonly standings: (Standing | undefined)[];
  private readonly looking = new Map<number, Promise<unknown>>();
  private readonly nextLook: number[];
  private founding: Promise<void> | undefined;
  /** Locks have been given out by this quorum before. */
  private inService = false;
  /** The leases that this process has asked for beyond the usual. */
  private readonly longLeases: LongLeases = { since: Infinity, until: -Infinity };

  constructor(
    private readonly members: readonly Member[],
    /** What every process asks for, ms. */
    private readonly leaseTime: number,
  ) {
    this.standings = members.map(() => undefined);
    this.nextLook = members.map(() => 0);
  }

  /** A lease of this length is about to be asked for. Who starts after that may forget it; who is there will not. */
  learn(leaseTime: number): void {
    if (leaseTime <= this.leaseTime) return;
    const time = performance.now();
    const { longLeases } = this;
    if (longLeases.until < time) longLeases.since = time;
    longLeases.until = Math.max(longLeases.until, time + leaseTime);
  }

  /** Whether the vote of a member counts that answers over its present connection. */
  async mayVote(index: number): Promise<boolean> {
    if (this.current(index) === undefined) await this.look(index);
    if (this.current(index) === undefined) return false;
    if (this.quarantineOf(index) === 0) return true;
    if (this.clocks.length < quorumOf(this.members.length)) {
      await this.hearing(0);
      if (this.quarantineOf(index) === 0) return true;
    }
    if (!this.inService) {
      this.founding ??= this.found().finally(() => {
        this.founding = undefined;
      });
      await this.founding;
    }
    if (this.quarantineOf(index) === 0) return true;
    for (let looks = 0; looks < LOOKS && performance.now() >= (this.nextLook[index] ?? 0); looks++) {
      await this.look(index);
      if (this.quarantineOf(index) === 0) return true;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    if (performance.now() < (this.nextLook[index] ?? 0)) return false;
    this.nextLook[index] = performance.now() + RECESS;
    await this.admit(index);
    return false;
  }

  /** ms until the member's vote counts; undefined when it is not known who it is. */
  quarantineOf(index: number): number | undefined {
    const standing = this.current(index);
    if (standing === undefined) return undefined;
    const quarantine = Math.max(0, this.votesFrom(standing) - performance.now());
    if (quarantine > 0 && !standing.founder) return quarantine;
    this.inService = true;
    return 0;
  }

  /**
   * What the members' clocks say, µs: the one in the middle. Undefined while too few have told. They have gone on while this
   * machine was suspended. Whose vote counts is a matter of time that has certainly passed, which a suspension does not add to.
   */
  get time(): number | undefined {
    const suspended = suspendedSoFar();
    const clocks = this.standings.flatMap((standing) => {
      if (standing === undefined) return [];
      const missed = suspended - standing.suspended;
      return { least: standing.clock.least + missed, most: standing.clock.most + missed };
    });
    const middle = middleOf(clocks, this.members.length);
    return middle === undefined ? undefined : (middle + performance.now()) * 1_000;
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

  /** @returns whether the member has told */
  private async identify(index: number): Promise<boolean> {
    const member = this.members[index];
    if (member === undefined) return false;
    const { generation } = member;
    const othersNoted = this.standings.some((standing, n) => n !== index && standing?.noted === true);
    let told: Incarnation;
    try {
      told = await member.identify();
    } catch {
      return false; // not known, so it does not vote
    }
    const { runId, noted } = told;
    const before = this.standings[index];
    const same = before !== undefined && runId !== undefined && before.runId === runId;
    if (before !== undefined && !same) this.inService = true;
    // Over one connection it is one run, whatever it is called.
    const seen =
      same || (runId === undefined && before?.runId === undefined && before?.generation === generation);
    const birth = seen ? before : this.birthOf(told, before !== undefined);
    const { seenAt, startedAt, clock, ownClock, suspended, longLeases } = birth;
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
    // Another run than the one before founds nothing: there is nothing to wait for.
    if (before !== undefined && !same) await this.admit(index);
    return true;
  }

  /** Tells processes that do not know the quorum yet that a young member belongs to one in service. */
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
    const seenAt = performance.now();
    // Another run than the one before may be old: that of a replica, which has missed the last writes.
    const replaced = known && runId !== undefined;
    const startedAt = uptime === undefined ? Infinity : replaced ? seenAt : seenAt - uptime;
    const ownClock = Date.now() - seenAt;
    const suspended = suspendedSoFar();
    return { seenAt, startedAt, clock, ownClock, suspended, longLeases: { ...this.longLeases } };
  }

  /** When every lease that the member may have forgotten has ended, on this process's monotonic clock. */
  private votesFrom({ seenAt, startedAt, clock, ownClock, longLeases }: Standing): number {
    if (startedAt === Infinity) return Infinity;
    const ahead = aheadOf(clock, ownClock, this.clocks, this.members.length) ?? Infinity;
    const bornAt = Math.min(startedAt + ahead, seenAt);
    const { since, until } = longLeases;
    return Math.max(bornAt + this.leaseTime, bornAt > since ? until : 0);
  }

  private get clocks(): readonly ClockReading[] {
    return this.standings.flatMap((standing) => standing?.clock ?? []);
  }

  /** Where nothing speaks against it in two rounds, all members become founders. */
  private async found(): Promise<void> {
    await this.hearing(HEARING);
    // What was learned before may be out of date: another process may have founded the quorum since, and given out locks.
    if (this.unproven() === undefined) return;
    if (!(await Promise.all(this.members.map((_, index) => this.identify(index)))).every(Boolean)) return;
    const unproven = this.unproven();
    if (unproven === undefined) return;
    await Promise.all(unproven.map((standing, index) => this.enrol(index, standing)));
    // Another process may have been quicker: what it has noted counts.
    await Promise.all(this.members.map((_, index) => this.identify(index)));
  }

  /** @returns all members, where each is young and bears no note */
  private unproven(): readonly Standing[] | undefined {
    const standings = this.members.flatMap((_, index) => this.current(index) ?? []);
    const proven = this.members.some((_, index) => this.quarantineOf(index) === 0);
    if (proven || standings.some((standing) => standing.noted || this.maybeOld(standing)))
      this.inService = true;
    return this.inService || standings.length < this.members.length ? undefined : standings;
  }

  /** By its word, which may be wrong. Before its start its clock has been set back, and it may be of any age. */
  private maybeOld({ startedAt, seenAt }: Standing): boolean {
    return startedAt !== Infinity && (startedAt > seenAt || startedAt + this.leaseTime <= performance.now());
  }

  private async enrol(index: number, standing: Standing): Promise<void> {
    if (standing.runId === undefined) return;
    try {
      await this.members[index]?.note(standing.runId, 2 * this.leaseTime);
      standing.noted = true;
    } catch {
      // It stays in quarantine.
    }
  }

  /** Looks at all, until all have answered, or a majority has and the others had so many ms. */
  private hearing(patience: number): Promise<void> {
    return new Promise((resolve) => {
      let answered = 0;
      let timer: NodeJS.Timeout | undefined;
      const looks = this.members.map(async (_, index) => {
        if (this.current(index) === undefined) await this.look(index);
        if (this.current(index) !== undefined && ++answered === quorumOf(this.members.length)) {
          timer = setTimeout(resolve, patience);
        }
      });
      void Promise.all(looks).then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
