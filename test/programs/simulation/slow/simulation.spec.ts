import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Summary } from '../summary.js';

const PROGRAM = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Takes a second each on a machine with nothing else to do. The others are for the nightly run. */
const QUICK = [
  'lease counted from the reply',
  'wall clock',
  'no timer for the loss',
  'place that waits for messages only',
  'what the store says',
  'quorum of one',
  'hand-made lease',
  'no quarantine',
  'derived keys collide',
  'sent whole only once',
  'no replica has confirmed',
  'without a second look',
];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lock-simulation-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function simulate(
  name: string,
  args: readonly string[],
): Promise<{ output: string; summary: Summary }> {
  const file = join(folder, name);
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, '--summary', file, ...args]);
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (errors.includes('Error')) throw new Error(errors);
  return { output, summary: JSON.parse(readFileSync(file, 'utf8')) as Summary };
}

describe('the simulation', () => {
  it('finds nothing wrong with the locks, on any topology', async () => {
    const { output, summary } = await simulate('whole', ['--controls', 'none', '--schedules', '4']);
    expect(output).not.toMatch(/[1-9]\d* violations/);
    for (const { events, faults, acquisitions } of summary.topologies) {
      expect(events).toBeGreaterThan(10_000);
      expect(faults).toBeGreaterThan(5);
      expect(acquisitions).toBeGreaterThan(100);
    }
  }, 1_200_000);

  it('does the same again for the same seeds, event by event, in another process', async () => {
    const args = ['--controls', 'none', '--schedules', '1', '--seed', '40', '--verbose'];
    const runs = await Promise.all(['one', 'other'].map((name) => simulate(name, args)));
    const digests = runs.map(({ output }) => output.match(/^.* events, [0-9a-f]{16}$/gm));
    expect(digests[0]?.length).toBe(4);
    expect(digests[1]).toEqual(digests[0]);
    expect(new Set(digests[0]).size).toBe(digests[0]?.length);
  }, 1_200_000);

  it('catches locks that are broken on purpose', async () => {
    const chosen = QUICK.flatMap((name) => ['--control', name]);
    const { summary } = await simulate('broken', ['--controls', 'only', ...chosen]);
    expect(summary.controls.filter(({ seed }) => seed === undefined)).toEqual([]);
    expect(summary.controls.length).toBe(QUICK.length);
  }, 1_200_000);
});
