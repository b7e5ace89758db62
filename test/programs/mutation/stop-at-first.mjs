/** A reporter of Jest's: one test that fails is enough, and the others of its file need not run. */
export default class StopAtFirst {
  onTestCaseResult(_test, { status }) {
    if (status === 'failed') process.exit(1);
  }
}
