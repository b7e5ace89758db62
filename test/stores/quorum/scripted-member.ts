import { type LockStore, LockUnavailableError } from '../../../lib/index.js';
import type { Incarnation, Member } from '../../../lib/stores/quorum/member.js';
import { ScriptedStore } from '../../doubles/scripted-store.js';

let runs = 0;

/** A server of a quorum in this process's memory, with a clock and a fate of its own. */
export class ScriptedMember implements Member {
  readonly store: LockStore & ScriptedStore;
  generation = 0;
  reachable = true;
  isDown = false;
  /** Undefined where it does not tell. */
  runId: string | undefined = `run-${String(++runs)}`;
  noted: string | undefined;
  tellsUptime = true;
  /** By how much its wall clock is ahead of this process's, ms. */
  clockOffset = 0;
  private startedAt: number;

  constructor(
    readonly node: string,
    uptime = 0,
  ) {
    this.store = new ScriptedStore();
    this.startedAt = performance.now() - uptime;
  }

  outage(name: string): Error {
    return new LockUnavailableError(name, { cause: new Error('out of reach'), effect: 'refused' });
  }

  restart(): void {
    this.generation++;
    this.startedAt = performance.now();
    this.noted = undefined;
    if (this.runId !== undefined) this.runId = `run-${String(++runs)}`;
  }

  /** Its wall clock is set forward, or back, while it runs. */
  setClock(ms: number): void {
    this.clockOffset += ms;
    this.startedAt -= ms;
  }

  /** The connection is lost and comes back; the server has gone on. */
  reconnect(): void {
    this.generation++;
  }

  identify(): Promise<Incarnation> {
    if (!this.reachable) return Promise.reject(new Error('out of reach'));
    const uptime = this.tellsUptime ? performance.now() - this.startedAt : undefined;
    const clock = Date.now() + this.clockOffset - performance.now();
    return Promise.resolve({
      runId: this.runId,
      uptime,
      clock: { least: clock, most: clock },
      noted: this.noted,
    });
  }

  note(text: string): Promise<boolean> {
    if (!this.reachable) return Promise.reject(new Error('out of reach'));
    if (this.noted !== undefined) return Promise.resolve(false);
    this.noted = text;
    return Promise.resolve(true);
  }
}

/** @param uptime of each, ms */
export const scriptedMembers = (count: number, uptime = 0): ScriptedMember[] =>
  Array.from({ length: count }, (_, n) => new ScriptedMember(`node-${String(n)}`, uptime));
