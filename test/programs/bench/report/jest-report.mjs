/** The asserted checks in the form of a report of Jest, which CI adds up. */
export function jestReport(checks) {
  const asserted = checks.filter((check) => check.asserted);
  const failed = asserted.filter(({ met }) => !met).length;
  return {
    success: failed === 0,
    numPassedTests: asserted.length - failed,
    numFailedTests: failed,
    numPendingTests: 0,
    numTodoTests: 0,
    numRuntimeErrorTestSuites: 0,
  };
}
