import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import libsql from 'libsql';
import { FencingTable } from 'nestjs-distributed-lock/fencing';
import type { Processes } from './processes.js';
import { table } from './table.js';

interface Scene {
  readonly title: string;
  readonly mode: 'lock' | 'fence';
  /** Where the first buyer is stopped. */
  readonly at: string;
}

const SCENES: readonly Scene[] = [
  { title: 'with the lock, stopped while it pays', mode: 'lock', at: 'pays' },
  { title: 'with the fence, stopped while it pays', mode: 'fence', at: 'pays' },
  { title: 'with the fence, stopped before its guard', mode: 'fence', at: 'asks the database' },
];
const ANSWER = /bought|sold out|refused/;

export interface PausedHolders {
  readonly text: string;
  /** How many seats too many were sold in each scene. */
  readonly oversold: readonly number[];
}

/**
 * Two buyers for the last seat, each a process under the lock. The first one is stopped (`SIGSTOP`) for longer than its lease, as
 * a long garbage collection or a suspended machine does it, and goes on when the second one has an answer, or waits for it.
 */
export async function pauseHolders(processes: Processes, redisUrl: string): Promise<PausedHolders> {
  const directory = await mkdtemp(join(tmpdir(), 'last-seat-'));
  try {
    const rows: (readonly [string, number, number, string, string])[] = [];
    for (const [n, scene] of SCENES.entries()) {
      const answers = await play(scene, processes, redisUrl, join(directory, String(n)));
      const sold = answers.filter((answer) => answer === 'bought').length;
      rows.push([scene.title, sold, sold - 1, answers[0], answers[1]]);
    }
    const header = ['the first of two instances is paused', 'sold', 'oversold', 'first', 'second'];
    return { text: table(header, rows), oversold: rows.map(([, , oversold]) => oversold) };
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function play(
  { mode, at }: Scene,
  processes: Processes,
  redisUrl: string,
  file: string,
): Promise<[string, string]> {
  const database = new libsql(file);
  database.exec(new FencingTable({ dialect: 'sqlite' }).createTableSql());
  database.exec('CREATE TABLE show (sold INTEGER NOT NULL)');
  database.exec('INSERT INTO show VALUES (0)');
  database.close();

  const program = fileURLToPath(new URL('buyer.js', import.meta.url));
  const buyer = () => processes.open(process.execPath, [program, redisUrl, file, mode]);
  const first = buyer();
  await first.prints(new RegExp(at));
  first.kill('SIGSTOP');
  const second = buyer();
  await second.prints(new RegExp(`${ANSWER.source}|waits`));
  first.kill('SIGCONT');
  return [await first.prints(ANSWER), await second.prints(ANSWER)];
}
