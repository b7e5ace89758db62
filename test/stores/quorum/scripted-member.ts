import { type LockStore, LockUnavailableError } from '../../../lib/index.js';
import type { Change, Charter, Member, Report } from '../../../lib/stores/quorum/member.js';
import { QuorumLockStore } from '../../../lib/stores/quorum/quorum-lock-store.js';
import { CharterModel } from '../../doubles/charter-model.js';
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
  /** By how much its wall clock is ahead of this process's, ms. */
  clockOffset = 0;
  private model = this.newCharter();

  constructor(readonly node: string) {
    this.store = new ScriptedStore();
  }

  get chartered(): Charter | undefined {
    return this.model.amend().charter;
  }

  outage(name: string): Error {
    return new LockUnavailableError(name, { cause: new Error('out of reach'), effect: 'refused' });
  }

  restart(): void {
    this.generation++;
    this.model = this.newCharter();
    if (this.runId !== undefined) this.runId = `run-${String(++runs)}`;
  }

  /** The connection is lost and comes back; the server has gone on. */
  reconnect(): void {
    this.generation++;
  }

  run(): Promise<string | undefined> {
    return this.answer(() => this.runId);
  }

  charter(change?: Change): Promise<Report> {
    return this.answer(() => this.model.amend(change));
  }

  private newCharter(): CharterModel {
    return new CharterModel(() => Date.now() + this.clockOffset);
  }

  private answer<T>(act: () => T): Promise<T> {
    return this.reachable ? Promise.resolve(act()) : Promise.reject(new Error('out of reach'));
  }
}

export const scriptedMembers = (count: number): ScriptedMember[] =>
  Array.from({ length: count }, (_, n) => new ScriptedMember(`node-${String(n)}`));

/** The port, with the parts that this store has. */
export type StoreOnMembers = LockStore & {
  readonly [Part in 'waits' | 'subscribeToLosses' | 'leaseLimit']-?: NonNullable<LockStore[Part]>;
};

export const storeOn = (members: readonly ScriptedMember[], leaseTime: number): StoreOnMembers =>
  new QuorumLockStore(members, leaseTime);
