import { writeFileSync } from 'node:fs';
import type { Topology } from './cast.js';
import type { CallId, Plan } from './plan.js';
import { run, type RunResult } from './run.js';
import { callsOf, shrink } from './shrink.js';
import type { Program } from './world/program.js';

export interface Failure {
  readonly plan: Plan;
  readonly topology: Topology;
  readonly program: Program;
  readonly result: RunResult;
  /** Runs that shrinking may take. */
  readonly tries: number;
}

/** The smallest plan that was found to fail in the same way, and its run. */
export async function smallest({
  plan,
  topology,
  program,
  result,
  tries,
}: Failure): Promise<{ plan: Plan; result: RunResult }> {
  const checkers = new Set(result.violations.map(({ checker }) => checker));
  let last = result;
  const judge = async (candidate: Plan) => {
    const again = await run(candidate, topology, program);
    const fails = again.violations.some(({ checker }) => checkers.has(checker));
    if (fails) last = again;
    return { fails, calls: callsOf(again.history.attempts) };
  };
  const left = await shrink(plan, callsOf(result.history.attempts), judge, tries);
  return { plan: left, result: last };
}

/** Prints what was wrong, and the least that leads to it. */
export async function tell(failure: Failure): Promise<void> {
  const { plan, topology, result, tries } = failure;
  console.log(`${topology.name}, seed ${String(plan.seed)}: ${String(result.violations.length)} violations`);
  for (const { checker, at, message } of result.violations.slice(0, 5))
    console.log(`  ${checker} at ${at.toFixed(1)} ms: ${message}`);
  if (tries <= 0) return;
  const small = await smallest(failure);
  const calls: ReadonlySet<CallId> | undefined = small.plan.calls;
  const attempts = small.result.history.attempts.length;
  console.log(
    `  The same with ${String(attempts)} attempts${calls === undefined ? '' : ` of ${String(calls.size)} calls`} and these faults:`,
  );
  for (const { at, lasts, kind } of small.plan.faults)
    console.log(`    ${at.toFixed(1)} ms: ${kind}, for ${String(lasts)} ms`);
  for (const { checker, at, message } of small.result.violations.slice(0, 3))
    console.log(`    ${checker} at ${at.toFixed(1)} ms: ${message}`);
  if (process.env.SIMULATION_JOURNAL !== undefined)
    writeFileSync(process.env.SIMULATION_JOURNAL, small.result.journal());
}
