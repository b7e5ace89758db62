import { isElection } from '../../locks/election/election-mark.js';
import type { ServiceState } from '../../module/service-state.js';
import { oncePer } from '../once-per.js';
import { longestWaits } from './longest-waits.js';
import type { BoardLock } from './wire.js';

/** No shorter wait is unusual, ms. */
const LONG = 5_000;

const asElection = oncePer((lock: BoardLock): BoardLock => ({ ...lock, kind: 'election' }));

/**
 * The locks, with the kind of each that is an election: its candidates wait for as long as a term lasts. Only of a lock with a long
 * wait the store is asked.
 * @param before the locks of the last look
 */
export async function withElections(
  state: ServiceState,
  locks: readonly BoardLock[],
  at: number,
  before: readonly BoardLock[],
): Promise<BoardLock[]> {
  const marked = before.filter(({ kind }) => kind === 'election');
  const known = new Set([...marked, ...state.elections()].map(({ name }) => name));
  const plain = locks.filter(({ name, kind }) => kind === 'lock' && !known.has(name));
  const asked = longestWaits(plain, at - LONG);
  const answers = await Promise.all(asked.map((name) => isElection(state.client, name)));
  for (const [index, name] of asked.entries()) if (answers[index] === true) known.add(name);
  return locks.map((lock) => (known.has(lock.name) ? asElection(lock) : lock));
}
