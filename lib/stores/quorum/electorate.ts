import { setTimeout as sleep } from 'node:timers/promises';
import { type Incarnation, type Member, quorumOf } from './member.js';

/** What is known of a member's server. */
interface Standing {
  /** The connection over which it was learned. */
  readonly epoch: number;
  readonly runId: string | undefined;
  /** When every lease that it may have forgotten has ended, on this process's monotonic clock. */
  readonly votesFrom: number;
  readonly noted: boolean;
  /** Its present run is its first in this quorum, so that there is nothing it could have forgotten. */
  founder: boolean;
}

/** How often in a row it is looked whether another process is just founding the quorum, and how soon, ms. */
const LOOKS = 3;
const PAUSE = 20;
/** When it is looked again after that, ms. */
const RECESS = 1_000;
/** How long those that have not answered are waited for before a quorum is founded without them, ms. */
const HEARING = 250;

/**
 * Says whose vote counts. A node that has restarted may have forgotten a lock that is still held, so it votes again
 * only when every lease from before must have ended. Servers tell for how long they run.
 *
 * Those of a new quorum are young, too, and have nothing to forget. They are known by this: none that answers, and a
 * majority has to, is old or bears the note which the first process leaves on all of them. What this cannot tell from
 * a new quorum is one whose majority has restarted empty while the others are out of reach or have restarted too, seen by
 * a process that has not known it before.
 */
export class Electorate {
  private readonly standings: (Standing | undefined)[];
  private readonly looking = new Map<number, Promise<void>>();
  private readonly nextLook: number[];
  private founding: Promise<void> | undefined;
  /** Locks have been given out by this quorum before. */
  private inService = false;
  /** The leases that this process has asked for beyond the usual: since when there are any, and until when. */
  private readonly longLeases = { since: Infinity, until: -Infinity };

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
    const now = performance.now();
    const { longLeases } = this;
    if (longLeases.until < now) longLeases.since = now;
    longLeases.until = Math.max(longLeases.until, now + leaseTime);
  }

  /** Whether the vote of a member counts that answers over its present connection. */
  async mayVote(index: number): Promise<boolean> {
    if (this.current(index) === undefined) await this.look(index);
    if (this.current(index) === undefined) return false;
    if (this.quarantineOf(index) === 0) return true;
    if (!this.inService) {
      this.founding ??= this.found().finally(() => {
        this.founding = undefined;
      });
      await this.founding;
    }
    for (let looks = 0; looks < LOOKS && performance.now() >= (this.nextLook[index] ?? 0); looks++) {
      if (this.quarantineOf(index) === 0) return true;
      await sleep(PAUSE);
      await this.look(index);
    }
    if (this.quarantineOf(index) === 0) return true;
    this.nextLook[index] = performance.now() + RECESS;
    return false;
  }

  /** ms until the member's vote counts; undefined when it is not known who it is. */
  quarantineOf(index: number): number | undefined {
    const standing = this.current(index);
    if (standing === undefined) return undefined;
    const quarantine = Math.max(0, standing.votesFrom - performance.now());
    if (quarantine > 0 && !standing.founder) return quarantine;
    this.inService = true;
    return 0;
  }

  private current(index: number): Standing | undefined {
    const standing = this.standings[index];
    return standing?.epoch === this.members[index]?.epoch ? standing : undefined;
  }

  private async look(index: number): Promise<void> {
    let looking = this.looking.get(index);
    if (looking === undefined) {
      looking = this.identify(index).finally(() => this.looking.delete(index));
      this.looking.set(index, looking);
    }
    await looking;
  }

  private async identify(index: number): Promise<void> {
    const member = this.members[index];
    if (member === undefined) return;
    const { epoch } = member;
    let told: Incarnation;
    try {
      told = await member.identify();
    } catch {
      return; // not known, so it does not vote
    }
    const { runId, noted } = told;
    const before = this.standings[index];
    const same = before !== undefined && runId !== undefined && before.runId === runId;
    if (before !== undefined && !same) this.inService = true;
    this.standings[index] = {
      epoch,
      runId,
      votesFrom: same ? before.votesFrom : this.votesFrom(told, before !== undefined),
      noted: noted !== undefined,
      founder: runId !== undefined && (noted === runId || (same && before.founder)),
    };
  }

  private votesFrom({ runId, uptime }: Incarnation, known: boolean): number {
    const now = performance.now();
    // Another run than the one before may be old: that of a replica, which has missed the last writes.
    const replaced = known && runId !== undefined;
    const bornAt = uptime === undefined ? Infinity : replaced ? now : now - uptime;
    const { since, until } = this.longLeases;
    return Math.max(bornAt + this.leaseTime, bornAt > since ? until : 0);
  }

  /** Where nothing speaks against it, all that answer become founders. */
  private async found(): Promise<void> {
    await this.hearing();
    const answering = this.members.flatMap((member, index) => {
      const standing = this.current(index);
      return standing === undefined ? [] : [{ member, index, standing }];
    });
    if (answering.length < quorumOf(this.members.length)) return;
    if (answering.some(({ standing, index }) => standing.noted || this.quarantineOf(index) === 0)) {
      this.inService = true;
    }
    if (this.inService) return;
    await Promise.all(
      answering.map(async ({ member, standing }) => {
        const { runId } = standing;
        if (runId === undefined) return;
        try {
          await member.note(runId, 2 * this.leaseTime);
          standing.founder = true;
        } catch {
          // It stays in quarantine.
        }
      }),
    );
  }

  /** Looks at all, until all have answered, or a majority has and the others had their time. */
  private hearing(): Promise<void> {
    return new Promise((resolve) => {
      let answered = 0;
      let timer: NodeJS.Timeout | undefined;
      const looks = this.members.map(async (_, index) => {
        if (this.current(index) === undefined) await this.look(index);
        if (this.current(index) !== undefined && ++answered === quorumOf(this.members.length)) {
          timer = setTimeout(resolve, HEARING);
        }
      });
      void Promise.all(looks).then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
