// Usage: npm run bench -- [--quick] [--only <scenario,…>] [--rounds <n>] [--out <file>.json]
// The quick form takes less than a minute. `--ci --json --outputFile=<file>` write its checks as Jest would.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { check } from './report/budgets.mjs';
import { chart } from './report/chart.mjs';
import { jestReport } from './report/jest-report.mjs';
import { machine } from './report/machine.mjs';
import { tables } from './report/table.mjs';
import { run } from './run.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string' },
    out: { type: 'string' },
    ci: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    outputFile: { type: 'string' },
  },
});
// Servers of this run end with it, whatever ends it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

/** More digits than four say nothing. */
const rounded = (_key, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value);

const { quick, only, ci, outputFile } = options;

const results = await run({
  quick,
  only: only?.split(','),
  rounds: options.rounds === undefined ? undefined : Number(options.rounds),
  silent: ci,
});
const record = { machine: machine(), quick, results };
const checks = check(record, only === undefined);

console.log(tables(record, checks));
if (outputFile !== undefined) await writeFile(outputFile, JSON.stringify(jestReport(checks)));
if (!quick || options.out !== undefined) {
  const out = options.out ?? fileURLToPath(new URL('results/latest.json', import.meta.url));
  await mkdir(dirname(out), { recursive: true });
  await writeFile(out, `${JSON.stringify(record, rounded)}\n`);
  await writeFile(out.replace(/\.json$/, '.svg'), chart(record));
  console.log(`\nAll figures: ${out}`);
}
process.exitCode = checks.some(({ asserted, met }) => asserted && !met) ? 1 : 0;
