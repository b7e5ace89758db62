import { beforeEach, describe, expect, it } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';
import { TransientMap } from '../../lib/store/transient-map.js';

let map: TransientMap<string, number>;
beforeEach(() => {
  map = new TransientMap();
});

const all = () => [...map];

it.each([0, 1, 3, 60])('agrees with a Map through 600 changes of about %i entries', (stay) => {
  const plain = new Map<string, number>();
  for (let n = 0; n < 600; n++) {
    const [key, old] = [`key ${String(n)}`, `key ${String(n - stay)}`];
    map.set(key, n);
    plain.set(key, n);
    expect(map.delete(old)).toBe(plain.delete(old));
    expect(map.size).toBe(plain.size);
    if (n % 17 === 0) expect(all()).toEqual([...plain]);
  }
});

it('an iteration ends, and has every entry that is there throughout, while others are deleted and set', () => {
  for (let n = 0; n < 100; n++) map.set(`key ${String(n)}`, n);
  const seen: number[] = [];
  for (const [key, value] of map) {
    seen.push(value);
    if (value % 2 === 0) {
      map.delete(key);
      map.delete(`key ${String(value - 2)}`);
    }
    if (seen.length < 1_000) map.set(`late ${String(seen.length)}`, 1_001);
  }
  expect(seen.filter((value) => value < 100 && value % 2 === 1)).toHaveLength(50);
  expect(map.size).toBe(50 + Math.min(seen.length, 999));
});

describe('what has come and gone', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { type: 'minor' | 'major' }) => void;

  /** How much is left of 4 MB after minor collections, MB. */
  function left(entries: { set(key: string, value: object): unknown; delete(key: string): unknown }): number {
    entries.set('old', []);
    collect({ type: 'major' });
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 500; n++) {
      entries.set(
        `key ${String(n)}`,
        Array.from({ length: 1_000 }, () => n),
      );
      entries.delete(`key ${String(n - 8)}`);
      if (n % 20 === 0) collect({ type: 'minor' });
    }
    for (let n = 492; n < 500; n++) entries.delete(`key ${String(n)}`);
    for (let n = 0; n < 3; n++) collect({ type: 'minor' });
    return (process.memoryUsage().heapUsed - before) / 1e6;
  }

  it('is not kept by a table that has grown old, as it is in a Map', () => {
    expect(left(new TransientMap<string, object>())).toBeLessThan(0.75); // 1.5 in a Map
  });
});
