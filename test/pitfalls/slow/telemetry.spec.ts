/** Tools that listen: what they cost in memory, and what their mistakes do to a lock. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from '@jest/globals';

const program = fileURLToPath(new URL('../telemetry-probe.mjs', import.meta.url));

async function probe(name: string): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    '--no-warnings',
    program,
    name,
  ]);
  return JSON.parse(stdout);
}

let answers: readonly unknown[];

// Side by side: they compute for some seconds.
beforeAll(async () => {
  answers = await Promise.all(['unheard', 'heard', 'throwing'].map(probe));
});

it.each(['unheard', 'heard'])(
  'has a heap that stays as it is over 100,000 locks, with channels %s',
  (how) => {
    const sizes = answers[how === 'unheard' ? 0 : 1] as number[];
    const [first = 0] = sizes;
    const told = sizes.map((size) => `${String(Math.round(size / 1_000))} kB`).join(', ');
    process.stdout.write(`The heap, channels ${how}: ${told}\n`);
    // 75,000 cycles lie between them: 20 bytes of each would be seen.
    expect((sizes.at(-1) ?? NaN) - first).toBeLessThan(1_500_000);
  },
);

it('locks as ever beside subscribers that throw', () => {
  expect(answers[2]).toEqual({ answers: [1, 2], lost: false, refused: 'LOCK_ABORTED', left: 0, thrown: 10 });
});
