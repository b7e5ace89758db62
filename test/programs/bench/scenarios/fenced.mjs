import { existsSync } from 'node:fs';
import { tsImport } from 'tsx/esm/api';
import { median } from '../report/statistics.mjs';

const scenario = {
  id: 'fenced',
  title: 'A transaction on PostgreSQL (a read, a write, no fsync), and the guard as its first statement',
  contenders: ['ours'],
  figures: ['transaction', 'guarded', 'guardedThree', 'guardRatio'],
  quick: [],
  async measure(cast) {
    const { startPostgres } = await tsImport('../../../fencing/database-server.ts', import.meta.url);
    const { port, stop } = await startPostgres();
    try {
      const [{ bare, guarded, three }] = await cast.play('fenced', { port, times: 8_000 });
      // Slice by slice: other work on the machine slows both.
      const ratio = median(guarded.map((time, n) => time / bare[n]));
      return {
        transaction: median(bare),
        guarded: median(guarded),
        guardedThree: median(three),
        guardRatio: ratio,
      };
    } finally {
      await stop();
    }
  },
};

/** None on a machine without PostgreSQL. */
export const fenced = existsSync('/usr/lib/postgresql') ? [scenario] : [];
