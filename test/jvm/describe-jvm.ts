import { describe, it, jest } from '@jest/globals';

/** ms for a test that starts up to six processes, on a machine that is busy with other tests. */
const PATIENCE = 120_000;

/**
 * A block of tests that need a JVM. A developer's machine without one skips them and says why; CI installs what they need,
 * so there they fail.
 */
export function describeOnJvm(title: string, tests: () => void): void {
  const { JVM_MISSING, CI } = process.env;
  jest.setTimeout(PATIENCE);
  const missing = JVM_MISSING ?? 'test/jvm/build.mjs has not run';
  if (missing === '') describe(title, tests);
  else if (CI === undefined) describe.skip(`${title} (skipped: ${missing})`, tests);
  else
    it(`${title} (cannot run)`, () => {
      throw new Error(missing);
    });
}
