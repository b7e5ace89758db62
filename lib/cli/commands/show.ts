import type { LockHolder, LockState, LockWaiter } from '../../api/lock-state.js';
import { inQuotes, onOneLine } from '../../runtime/text.js';
import type { Given } from '../given.js';
import { EXIT } from '../exit-code.js';
import type { Screen } from '../output/screen.js';
import { table } from '../output/table.js';
import { duration, json } from '../output/text.js';
import { ask } from '../service.js';

export async function run(given: Given, screen: Screen): Promise<number> {
  const [name = ''] = given.names;
  const lock = await ask(given, (service) => service.inspect(name));
  if (given.flag('json')) screen.print(json(lock));
  else if (lock === null) screen.complain(`There is no lock "${inQuotes(name)}" that is held`);
  else for (const line of linesOf(lock, screen)) screen.print(line);
  return lock === null ? EXIT.no : EXIT.done;
}

function* linesOf(lock: LockState, screen: Screen): Generator<string> {
  const { name, kind, fencingToken, remainingTime, waiters, holders, queue } = lock;
  const unlisted = Math.max(0, waiters.processes - queue.length);
  yield screen.style('bold', onOneLine(name));
  yield `kind ${kind}, fencing token ${fencingToken === undefined ? 'not known' : String(fencingToken)}, ${end(remainingTime)}`;
  yield '';
  const held = ['HELD BY', 'SINCE', 'LEFT', 'MODE', 'OWNER'].map((title) => ({ title, ...least(title) }));
  yield* table(held, holders.map(holderRow), screen.width);
  if (queue.length > 0) {
    yield '';
    const waiting = ['#', 'WAITS', 'FOR', 'MODE', 'OWNER'].map((title) => ({ title, ...least(title) }));
    yield* table(waiting, queue.map(waiterRow), screen.width);
  }
  const isPlain = kind === 'lock';
  if (isPlain && unlisted > 0) yield `${String(unlisted)} more wait without a place in the queue`;
}

const least = (title: string) => (/^(HELD BY|WAITS|OWNER)$/.test(title) ? { least: 8 } : {});

const end = (time: number): string =>
  time === Infinity ? 'without an end' : `free in ${duration(time)} unless it is renewed`;

const holderRow = ({ label, owner, mode, since, remainingTime }: LockHolder): string[] => [
  onOneLine(label ?? 'not known'),
  since === undefined ? '–' : duration(ageOf(since)),
  duration(remainingTime),
  mode,
  onOneLine(owner),
];

const waiterRow = ({ position, label, owner, mode, since }: LockWaiter): string[] => [
  String(position),
  onOneLine(label ?? 'not known'),
  duration(ageOf(since)),
  mode,
  onOneLine(owner),
];

/** The clock of the store may be ahead. */
const ageOf = (since: Date): number => Math.max(0, Date.now() - since.getTime());
