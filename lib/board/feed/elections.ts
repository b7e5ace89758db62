import { isElection } from '../../locks/election/election-mark.js';
import { oncePer } from '../once-per.js';
import type { ServiceState } from '../../module/service-state.js';
import { longestWaits } from './longest-waits.js';
import type { BoardLock } from './wire.js';

/** No shorter wait is unusual, ms. */
const LONG = 5_000;

const asElection = oncePer((lock: BoardLock): BoardLock => ({ ...lock, kind: 'election' }));

/** Tells elections from plain locks: their candidates wait for as long as a term lasts. */
export class Elections {
  /** Other processes take part in these. */
  private marked: readonly string[] = [];

  /** The locks, with the kind of each that is an election. Only of one with a long wait the store is asked. */
  async told(state: ServiceState, locks: readonly BoardLock[], at: number): Promise<readonly BoardLock[]> {
    const known = new Set([...this.marked, ...state.elections().map(({ name }) => name)]);
    const plain = locks.filter(({ name, kind }) => kind === 'lock' && !known.has(name));
    const asked = longestWaits(plain, at - LONG);
    const answers = await Promise.all(asked.map((name) => isElection(state.client, name)));
    for (const [index, name] of asked.entries()) if (answers[index] === true) known.add(name);
    const told = locks.map((lock) => (known.has(lock.name) ? asElection(lock) : lock));
    this.marked = told.flatMap(({ name, kind }) => (kind === 'election' ? [name] : []));
    return told;
  }
}
