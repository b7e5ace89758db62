import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Random } from './random.js';
import { round, type RoundResult } from './round.js';
import { aloneOf, mixOf } from './schedule.js';
import { Summary } from './summary.js';
import { topologies } from './topologies/index.js';
import { controls } from './variants/controls.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1.2' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    topology: { type: 'string', multiple: true },
    /** Runs this one again, alone. */
    round: { type: 'string' },
    /** Where the figures go, as JSON. */
    summary: { type: 'string' },
    /** `only` or `none`, else both. */
    controls: { type: 'string', default: 'too' },
    /** Of a control's name: only those. */
    control: { type: 'string', multiple: true },
    parallel: { type: 'string', default: String(Math.max(1, Math.floor(availableParallelism() / 2))) },
  },
});

const PACKAGE = new URL('../../dist/index.js', import.meta.url).href;
const seed = Number(values.seed);
const stages = topologies.filter(({ name }) => values.topology?.includes(name) ?? true);
if (stages.length === 0)
  throw new Error(`--topology is one of ${topologies.map(({ name }) => name).join(', ')}`);

let failed = false;
if (values.controls !== 'only') {
  console.log(
    `Seed ${String(seed)}; the same seed strikes the same way: npm run chaos -- --seed ${String(seed)}`,
  );
  const summary = new Summary(seed);
  const end = performance.now() + Number(values.minutes) * 60_000;
  const only = values.round === undefined ? undefined : Number(values.round);
  let next = only ?? 0;
  const run = async () => {
    while (performance.now() < end && (only === undefined || next === only)) {
      const number = next++;
      const topology = stages[number % stages.length]!;
      // Every round has a seed of its own, so that one can be run again without those before it.
      const random = new Random(seed + number * 7_919);
      const result = await round({
        topology,
        random,
        duration: 10_000,
        package: PACKAGE,
        // The first is calm, a quarter has one fault alone.
        schedule: (faults, random, duration) => {
          if (number < stages.length) return [];
          if (number % 4 === 0) return aloneOf(random.pick(faults), random, duration, 8);
          return mixOf(faults, random, duration, random.between(12, 28));
        },
      });
      summary.add(topology.name, number, result);
      report(number, topology.name, result);
    }
  };
  await Promise.all(Array.from({ length: Number(values.parallel) }, run));
  summary.print();
  if (values.summary !== undefined) writeFileSync(values.summary, `${JSON.stringify(summary, null, 2)}\n`);
  failed = summary.violations > 0;
}
if (values.controls !== 'none') failed = !(await controls(PACKAGE, values.control)) || failed;
process.exitCode = failed ? 1 : 0;

function report(
  number: number,
  topology: string,
  { violations, acquisitions, strikes, journals }: RoundResult,
): void {
  const struck = Object.values(strikes).reduce((sum, count) => sum + count, 0);
  console.log(
    `round ${String(number)}, ${topology}: ${String(acquisitions)} acquisitions, ${String(struck)} faults, ` +
      `${String(violations.length)} violations`,
  );
  for (const { checker, message } of violations.slice(0, 10)) console.log(`  ${checker}: ${message}`);
  if (journals !== undefined) console.log(`  faults: ${Object.keys(strikes).join(', ')}`);
}
