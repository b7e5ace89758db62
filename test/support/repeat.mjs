import { relative } from 'node:path';

/** Where a run of Jest was started. */
const ROOT = process.cwd();

/** The shell command that repeats the tests of one file that have failed. */
export function commandFor({ testFilePath, testResults }, project) {
  const failed = testResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
  const one = failed.length === 1 ? ` -t '${escape(failed[0])}'` : '';
  return `npm run test:all -- --selectProjects ${project} --testPathPatterns ${relative(ROOT, testFilePath)}${one}`;
}

/** As a pattern, between single quotes of a shell. */
const escape = (title) =>
  title.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`).replaceAll("'", String.raw`'\''`);

/** Prints for each file that has failed how to repeat that. */
export default class Repeat {
  onRunComplete(_contexts, { testResults }) {
    const failed = testResults.filter(
      ({ numFailingTests, testExecError }) => numFailingTests > 0 || testExecError,
    );
    if (failed.length === 0) return;
    console.error('\nTo repeat what has failed:');
    for (const result of failed)
      console.error(`  ${commandFor(result, result.displayName?.name ?? 'nest-12')}`);
  }
}
