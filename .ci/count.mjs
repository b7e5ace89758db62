// Usage: node count.mjs <directory of Jest's JSON reports> <failures besides>
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [directory, besides] = process.argv.slice(2);
let [passed, failed, skipped] = [0, Number(besides), 0];
for (const file of readdirSync(directory)) {
  const report = JSON.parse(readFileSync(join(directory, file), 'utf8'));
  passed += report.numPassedTests;
  skipped += report.numPendingTests + report.numTodoTests;
  // A file that cannot be loaded has no tests to count.
  const failures = report.numFailedTests + report.numRuntimeErrorTestSuites;
  failed += report.success ? failures : Math.max(failures, 1);
}

console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed > 0 ? 1 : 0;
