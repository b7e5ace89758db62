import { describe, expect, it } from '@jest/globals';
import type { Attempt } from '../history.js';
import { deadlocks } from './deadlocks.js';
import { history, hold, refused } from './histories.js';

/** A caller of a process that holds one lock from 0 on, and waits for another. */
function nested(process: string, held: string, wanted: string, from: number, to: number): Attempt[] {
  const until = { deadlines: [{ at: 0, until: 20_000 }], releaseFrom: to + 1 };
  const outer = hold(0, { process, lock: held, ...until });
  return [outer, refused(from, to, { process, lock: wanted, under: outer.op })];
}
const step = (process: string, name: string) => ({ process, name, label: 'lock' });
const cycle = [step('A', 'y'), step('B', 'x')];
const told = (at: number) => [{ process: 'A', at, cycle, broken: true }];

describe('deadlocks', () => {
  it('that are told of have been some', () => {
    const real = [...nested('A', 'x', 'y', 10, 900), ...nested('B', 'y', 'x', 20, 800)];
    expect(deadlocks(history(real, { deadlocks: told(850) }))).toEqual([]);
    // The first wait had ended when the second began.
    const never = [...nested('A', 'x', 'y', 10, 300), ...nested('B', 'y', 'x', 400, 800)];
    expect(deadlocks(history(never, { deadlocks: told(700) }))).toHaveLength(1);
    // They wait for each other only later.
    expect(deadlocks(history(real, { deadlocks: told(15) }))).toHaveLength(1);
    const others = [...nested('A', 'x', 'y', 10, 900), ...nested('B', 'z', 'x', 20, 800)];
    expect(deadlocks(history(others, { deadlocks: told(850) }))).toHaveLength(1);
    // A killed process waits for nothing.
    const killed = history(real, { deadlocks: told(850) });
    killed.processes.get('B')!.lastSeen = 15;
    expect(deadlocks(killed)).toHaveLength(1);
  });

  it('are told of when they last', () => {
    const lasting = [...nested('A', 'x', 'y', 10, 4_000), ...nested('B', 'y', 'x', 20, 4_000)];
    expect(deadlocks(history(lasting))).toHaveLength(1);
    expect(deadlocks(history(lasting, { deadlocks: told(2_000) }))).toEqual([]);
    const fault = { fault: 'network slow', severity: 'harmless', from: 1_000, to: 1_500 } as const;
    expect(deadlocks(history(lasting, { faults: [fault] }))).toEqual([]);
    const short = [...nested('A', 'x', 'y', 10, 2_500), ...nested('B', 'y', 'x', 20, 2_500)];
    expect(deadlocks(history(short))).toEqual([]);
    const chain = [...nested('A', 'x', 'y', 10, 4_000), ...nested('B', 'y', 'z', 20, 4_000)];
    expect(deadlocks(history(chain))).toEqual([]);
  });

  it('of three callers are followed, too', () => {
    const three = [
      ...nested('A', 'x', 'y', 10, 4_000),
      ...nested('B', 'y', 'z', 20, 4_000),
      ...nested('C', 'z', 'x', 20, 4_000),
    ];
    expect(deadlocks(history(three))).toHaveLength(1);
  });
});
