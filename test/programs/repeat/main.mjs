// Usage: npm run repeat -- [--runs 20] [--busy 2] [--all] [-- arguments of npm test]
//
// Runs `npm test` so many times in a row, beside so many loops that keep a core busy, and prints a table of the runs and one of
// what has failed, with how often. With --all it is `npm run test:all`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    busy: { type: 'string', default: '0' },
    all: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});

const folder = mkdtempSync(join(tmpdir(), 'lock-repeat-'));
const busy = Array.from({ length: Number(values.busy) }, () =>
  spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' }),
);
const runs = [];
/** How often each test has failed. */
const failures = new Map();

process.once('exit', () => {
  for (const loop of busy) loop.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
  console.table(runs);
  if (failures.size > 0)
    console.table([...failures].map(([test, times]) => ({ test, times })).sort((a, b) => b.times - a.times));
  const red = runs.filter(({ failed }) => failed !== 0).length;
  console.log(`${runs.length} runs, ${red} with failures`);
  if (red > 0) process.exitCode = 1;
});
process.once('SIGINT', () => process.exit(130));

for (let run = 1; run <= Number(values.runs); run++) {
  const report = join(folder, `${run}.json`);
  const times = await npmTest(report);
  // A run that ends before its tests has no report.
  const result = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { testResults: [] };
  const names = result.testResults.flatMap(({ name, status, assertionResults }) => {
    const file = relative(process.cwd(), name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (status === 'failed' && failed.length === 0) return [file];
    return failed.map(({ fullName }) => `${file}: ${fullName}`);
  });
  for (const name of names) failures.set(name, (failures.get(name) ?? 0) + 1);
  const failed = result.success === true ? 0 : Math.max(names.length, 1);
  runs.push({ run, ...times, passed: result.numPassedTests ?? 0, failed });
  console.log(`run ${run}: ${times.seconds} s, ${times.cpu} s of CPU time, ${failed} failed`);
}

/** @returns how long it took, and the CPU time of all its processes that have been waited for, s */
async function npmTest(report) {
  const args = ['--json', `--outputFile=${report}`, ...positionals].map((arg) => `'${arg}'`).join(' ');
  // The shell knows the CPU time of what it has started.
  const command = `TIMEFORMAT='times %R %U %S'; time npm test --ignore-scripts -- ${args}`;
  const env = { ...process.env, ...(values.all ? { TESTS: 'all' } : {}) };
  const child = spawn('bash', ['-c', command], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.on('data', (chunk) => (output = (output + chunk).slice(-2_000)));
  await once(child, 'close');
  const [, seconds = NaN, user = NaN, system = NaN] =
    /times ([\d.]+) ([\d.]+) ([\d.]+)/.exec(output)?.map(Number) ?? [];
  return { seconds: Math.round(seconds), cpu: Math.round(user + system) };
}
