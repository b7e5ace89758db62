import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Random } from '../random.js';
import { round } from '../round.js';
import { aloneOf, type Planned } from '../schedule.js';
import { topologies } from '../topologies/index.js';
import { broken, type Control } from './broken.js';
import { breakPackage } from './variant.js';

/** How often a control is tried: what it does wrong is a matter of chance. */
const TRIES = 3;
const DURATION = 3_500;

/** Runs every broken lock and prints what has caught it. @returns for each, which checkers have, and how often */
export async function controls(
  entry: string,
  names: readonly string[] = [],
  part = '0/1',
): Promise<{ name: string; caught: Record<string, number> }[]> {
  const [first = 0, step = 1] = part.split('/').map(Number);
  const chosen = broken
    .filter(({ name }) => names.length === 0 || names.some((text) => name.includes(text)))
    .filter((_, index) => index % step === first % step);
  const rows = await together(chosen, async (control) => ({
    control,
    caught: await caughtBy(control, entry),
  }));
  console.log('Locks broken on purpose, and the checkers that caught them:');
  for (const { control, caught } of rows) {
    const verdict =
      caught.size === 0
        ? 'NOT CAUGHT'
        : [...caught].map(([checker, count]) => `${checker} ${String(count)}`).join(', ');
    console.log(`  ${control.name.padEnd(52)} ${verdict}`);
  }
  return rows.map(({ control, caught }) => ({ name: control.name, caught: Object.fromEntries(caught) }));
}

async function caughtBy({ patches, faults, topology = 'single', ...options }: Control, entry: string) {
  const caught = new Map<string, number>();
  const broken = await breakPackage(entry, patches);
  for (let attempt = 1; attempt <= TRIES && caught.size === 0; attempt++) {
    const { violations } = await round({
      topology: topologies.find(({ name }) => name === topology)!,
      random: new Random(attempt),
      duration: DURATION,
      package: broken,
      ...options,
      schedule: (offered, random, duration) =>
        faults.flatMap((name): Planned[] => {
          const fault = offered.find((one) => one.name === name);
          if (fault === undefined) throw new Error(`There is no fault "${name}" on ${topology}`);
          return aloneOf(fault, random, duration, 2);
        }),
    });
    for (const { checker } of violations) caught.set(checker, (caught.get(checker) ?? 0) + 1);
  }
  await rm(dirname(dirname(fileURLToPath(broken))), { recursive: true });
  return caught;
}

/** Three at a time: they mostly wait. */
async function together<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await run(items[index]!);
  };
  await Promise.all([worker(), worker(), worker()]);
  return results;
}
