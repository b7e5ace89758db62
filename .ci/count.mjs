// Usage: node count.mjs <directory of Jest's JSON reports> [a step that failed besides…]
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [directory, ...steps] = process.argv.slice(2);
let [passed, failed, skipped] = [0, steps.length, 0];
// Of a long output often only the end is kept, so all that failed is said there once more.
const failures = [...steps];
for (const file of readdirSync(directory)) {
  const report = JSON.parse(readFileSync(join(directory, file), 'utf8'));
  passed += report.numPassedTests;
  skipped += report.numPendingTests + report.numTodoTests;
  // A file that cannot be loaded has no tests to count.
  const count = report.numFailedTests + report.numRuntimeErrorTestSuites;
  failed += report.success ? count : Math.max(count, 1);
  if (!report.success) failures.push(file);
  for (const suite of report.testResults ?? [])
    if (suite.status === 'failed') failures.push(`${suite.name}\n${suite.message}`);
}

if (failures.length > 0)
  console.log(`\n== Failed\n${failures.join('\n').replaceAll(/\u001B\[[\d;]*m/gu, '')}\n`);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed > 0 ? 1 : 0;
