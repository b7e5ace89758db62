import { describe, expect, it } from '@jest/globals';
import { lockTable } from '../../lib/cli/output/lock-table.js';

const NAMES = Array.from({ length: 200_000 }, (_, n) => `order:${String(n)}`);

describe('A table of locks', () => {
  it('has room for more rows than a function takes arguments', () => {
    const locks = NAMES.map((name) => ({ name, kind: 'lock' as const, holders: [], waiting: 1 }));
    const lines = lockTable(
      locks.map((lock) => ({ ...lock, longestWait: null })),
      80,
    );
    expect(lines).toHaveLength(NAMES.length + 1);
    expect(lines.at(-1)).toMatch(/^order:199999 +lock +–/);
  });

  it('has room for more holders of one lock than a function takes arguments', () => {
    const holders = NAMES.map((label, n) => ({ label, since: 5_000 + n, remaining: 1_000, fencingToken: n }));
    const [, line] = lockTable(
      [{ name: 'stock', kind: 'read-write', holders, waiting: 0, longestWait: null }],
      80,
    );
    expect(line).toMatch(/^stock +read-write +order:0 \+199999 +3m 24s +1\.0s +0 +–$/);
  });
});
