import { writeFileSync } from 'node:fs';

/** A reporter of Jest's: one test that fails is enough, and the others of its file need not run. */
export default class StopAtFirst {
  onTestCaseResult({ path }, { status }) {
    if (status !== 'failed') return;
    writeFileSync(process.env.FAILED_SPEC, path);
    process.exit(1);
  }
}
