import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Random } from './random.js';
import { round, type RoundResult } from './round.js';
import { aloneOf, mixOf, oneOf } from './schedule.js';
import { timesOf } from './strikes.js';
import { jestReport, Summary } from './summary.js';
import { topologies } from './topologies/index.js';
import type { Topology } from './topologies/topology.js';
import { controls } from './variants/controls.js';

const { values } = parseArgs({
  options: {
    /** For so long, instead of one short round of each kind. */
    minutes: { type: 'string' },
    seed: { type: 'string' },
    topology: { type: 'string', multiple: true },
    /** Runs this one again, alone. */
    round: { type: 'string' },
    /** Where the figures go, as JSON. */
    summary: { type: 'string' },
    /** `only` or `none`, else both. */
    controls: { type: 'string', default: 'too' },
    /** `0/3`: of the controls only every third one, from the first on. */
    part: { type: 'string', default: '0/1' },
    /** Of a control's name: only those. */
    control: { type: 'string', multiple: true },
    /** Of faults' names: only those strike, one alone in each round. */
    fault: { type: 'string', multiple: true },
    parallel: { type: 'string', default: String(Math.max(1, Math.floor(availableParallelism() / 2))) },
    // A report as Jest would write it, which CI adds up.
    ci: { type: 'boolean' },
    json: { type: 'boolean' },
    outputFile: { type: 'string' },
  },
});

/** Locks are taken together by one script on one server, one after the other on a cluster, and by votes on a quorum. */
const SEVERAL_AT = ['single', 'cluster', 'quorum'];

interface Course {
  readonly topology: Topology;
  /** Of what is built on the lock. */
  readonly promises?: boolean;
  readonly habits?: Readonly<Record<string, number>>;
}

/** Minutes of a run over everything whose silence shall mean something. */
const LONG = 20;
const PACKAGE = new URL('../../../dist/index.js', import.meta.url).href;
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
const stages = topologies.filter(({ name }) => values.topology?.includes(name) ?? true);
if (stages.length === 0)
  throw new Error(`--topology is one of ${topologies.map(({ name }) => name).join(', ')}`);

const summary = new Summary(seed);
if (values.controls !== 'only') {
  const same = values.seed === undefined ? ['--seed', String(seed)] : [];
  console.log(
    `To strike the same way again: npm run chaos -- ${[...process.argv.slice(2).map(quoted), ...same].join(' ')}`,
  );
  const long = values.minutes !== undefined;
  const end = performance.now() + Number(values.minutes) * 60_000;
  const only = values.round === undefined ? undefined : Number(values.round);
  /** For what is built on the lock, which a quorum carries in part only. */
  const others = stages.filter(({ name }) => name !== 'quorum').slice(-1);
  others.push(...stages.filter(({ name }) => name === 'single'));
  const courses: readonly Course[] = [
    ...stages.map((topology) => ({ topology })),
    ...others.map((topology) => ({ topology, promises: true })),
    ...stages
      .filter(({ name }) => SEVERAL_AT.includes(name))
      .map((topology) => ({ topology, habits: { several: 0.3 } })),
  ];
  const isOver = (number: number) =>
    only !== undefined ? number !== only : long ? performance.now() > end : number >= courses.length;
  let next = only ?? 0;
  const run = async () => {
    while (!isOver(next)) {
      const number = next++;
      const { topology, promises = false, habits = {} } = courses[number % courses.length]!;
      const pass = Math.floor(number / courses.length);
      // Every round has a seed of its own, so that one can be run again without those before it.
      const random = new Random(seed + number * 7_919);
      const result = await round({
        topology,
        random,
        duration: long ? 10_000 : promises ? 3_500 : 5_000,
        package: PACKAGE,
        promises,
        habits,
        // In a long run the first pass is calm, and in a quarter of the others one fault strikes alone.
        schedule: (offered, random, duration) => {
          const faults = offered
            .filter(({ name }) => values.fault?.includes(name) ?? true)
            // Where the store forgets, or its clock steps, the promises are those that the limits leave.
            .filter(({ severity, apart }) => !promises || (severity !== 'loss' && apart !== 'clock'));
          if (faults.length === 0) return [];
          if (long && pass === 0 && values.fault === undefined) return [];
          if (values.fault !== undefined || (long && pass % 4 === 1))
            return aloneOf(oneOf(faults, random), random, duration, 8);
          return mixOf(faults, random, duration, random.between(12, 28));
        },
      });
      summary.add(topology.name, number, result);
      report(number, topology.name, result);
    }
  };
  await Promise.all(Array.from({ length: Number(values.parallel) }, run));
  if (Number(values.minutes) >= LONG && (values.topology ?? values.fault ?? only) === undefined)
    summary.findShortfalls();
  summary.print();
}
if (values.controls !== 'none') summary.controls = await controls(PACKAGE, values.control, values.part);
if (values.summary !== undefined) writeFileSync(values.summary, `${JSON.stringify(summary, null, 2)}\n`);
if (values.outputFile !== undefined) writeFileSync(values.outputFile, JSON.stringify(jestReport(summary)));
process.exitCode = jestReport(summary).success ? 0 : 1;

function report(
  number: number,
  topology: string,
  { violations, acquisitions, ofSeveral, notes, strikes, journals }: RoundResult,
): void {
  const struck = timesOf(strikes);
  const together = ofSeveral === 0 ? '' : ` (${String(ofSeveral)} calls for several locks)`;
  const got = notes > 0 ? `${String(notes)} notes` : `${String(acquisitions)} acquisitions${together}`;
  console.log(
    `round ${String(number)}, ${topology}: ${got}, ${String(struck)} faults, ${String(violations.length)} violations`,
  );
  for (const { checker, message } of violations.slice(0, 10)) console.log(`  ${checker}: ${message}`);
  if (journals !== undefined)
    console.log(`  faults: ${Object.values(strikes).flatMap(Object.keys).join(', ')}`);
}

function quoted(argument: string): string {
  return argument.includes(' ') ? `'${argument}'` : argument;
}
