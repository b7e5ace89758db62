// Usage: node alone.mjs <Jest's JSON report>
//
// Runs the few files that failed once more, alone: beside others on a small machine a real server may miss a deadline
// that no test means. What fails alone as well has failed. What failed first is printed either way, so that a race which
// shows itself rarely can be looked into; more than two dozen such files are no accident of the machine.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

const MOST = 24;

const [file] = process.argv.slice(2);
const all = JSON.parse(readFileSync(file, 'utf8'));
const failed = all.testResults.filter((suite) => suite.status === 'failed');
const names = [...new Set(failed.map((suite) => suite.name))];
if (names.length === 0 || names.length > MOST) process.exit();

console.log(`\n== Failed beside others, run alone now\n${failed.map((suite) => suite.message).join('\n')}\n`);
const again = `${file}.alone`;
const arguments_ = [
  'test',
  '--ignore-scripts',
  '--',
  ...names,
  '--ci',
  '--maxWorkers=1',
  '--json',
  `--outputFile=${again}`,
];
spawnSync('npm', arguments_, { stdio: 'inherit', timeout: 1_500_000 });
const alone = JSON.parse(readFileSync(again, 'utf8'));
rmSync(again);

all.testResults = [...all.testResults.filter((suite) => !names.includes(suite.name)), ...alone.testResults];
const tests = all.testResults.flatMap((suite) => suite.assertionResults);
const count = (...states) => tests.filter((test) => states.includes(test.status)).length;
all.numPassedTests = count('passed');
all.numFailedTests = count('failed');
all.numPendingTests = count('pending', 'skipped');
all.numTodoTests = count('todo');
all.numRuntimeErrorTestSuites = alone.numRuntimeErrorTestSuites;
all.success = alone.success;
writeFileSync(file, JSON.stringify(all));
