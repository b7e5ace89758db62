import 'reflect-metadata';
import type * as nest from '@nestjs/common';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { catchMutant } from './controls/catch.js';
import { mutants } from './controls/mutants.js';
import { planOf } from './plans.js';
import { tell } from './report.js';
import { run } from './run.js';
import { Summary } from './summary.js';
import { topologies } from './topologies.js';
import { Program } from './world/program.js';

const { values } = parseArgs({
  options: {
    /** The first seed; the following ones come after it. */
    seed: { type: 'string', default: '1' },
    /** Of each topology: until so many events have happened, or so many seeds have run. */
    events: { type: 'string', default: '200000' },
    schedules: { type: 'string' },
    topology: { type: 'string', multiple: true },
    /** `only` or `none`, else both. */
    controls: { type: 'string', default: 'too' },
    /** Of a control's name: only those. */
    control: { type: 'string', multiple: true },
    /** s of one core that a control may take. */
    limit: { type: 'string', default: '60' },
    /** Runs that it may take to leave out of a failure what it does not need. */
    shrink: { type: 'string', default: '150' },
    /** Where the figures go, as JSON. */
    summary: { type: 'string' },
    /** Prints a line for each run. */
    verbose: { type: 'boolean' },
  },
});

const DIST = dirname(fileURLToPath(new URL('../../../dist/index.js', import.meta.url)));
// The package is loaded as CommonJS here, and so is its Nest.
const { Logger } = createRequire(import.meta.url)('@nestjs/common') as typeof nest;
Logger.overrideLogger(false);

const chosen = topologies.filter(({ name }) => values.topology?.includes(name) ?? true);
if (chosen.length === 0)
  throw new Error(`--topology is one of ${topologies.map(({ name }) => name).join(', ')}`);
const summary = new Summary();

if (values.controls !== 'only') {
  for (const topology of chosen) {
    const program = await Program.load(DIST, topology.hasClients);
    const figures = summary.begin(topology.name);
    const isOver = (runs: number) =>
      values.schedules === undefined
        ? figures.events >= Number(values.events)
        : runs >= Number(values.schedules);
    for (let runs = 0; !isOver(runs); runs++) {
      const seed = Number(values.seed) + runs;
      const plan = planOf(topology, seed);
      const result = await run(plan, topology, program);
      figures.add(seed, result);
      if (values.verbose === true)
        console.log(`${topology.name} ${String(seed)}: ${String(result.events)} events, ${result.digest}`);
      if (result.violations.length > 0)
        await tell({ plan, topology, program, result, tries: Number(values.shrink) });
    }
    figures.end();
    console.log(figures.line);
  }
}

if (values.controls !== 'none') {
  console.log('Locks broken on purpose, and what caught them:');
  for (const mutant of mutants) {
    if (values.control?.every((part) => !mutant.name.includes(part)) === true) continue;
    const topology = chosen.find(({ name }) => name === mutant.topology);
    if (topology === undefined) continue;
    const caught = await catchMutant(mutant, topology, DIST, Number(values.limit));
    summary.caught(caught);
    const by =
      caught.seed === undefined ? 'NOT CAUGHT' : `${caught.checkers.join(', ')}, seed ${String(caught.seed)}`;
    console.log(
      `  ${caught.name.padEnd(56)} ${topology.name.padEnd(7)} ${caught.seconds.toFixed(1).padStart(5)} s  ${by}`,
    );
    if (values.verbose === true)
      for (const { message } of caught.result?.violations.slice(0, 3) ?? []) console.log(`      ${message}`);
  }
}

if (values.summary !== undefined) writeFileSync(values.summary, `${JSON.stringify(summary, null, 2)}\n`);
process.exitCode = summary.isGood ? 0 : 1;
