/** The asserted checks in the form of a report of Jest, which CI adds up. */
export function jestReport(checks) {
  const asserted = checks.filter((check) => check.asserted);
  const failed = asserted.filter(({ met }) => !met);
  return {
    success: failed.length === 0,
    numPassedTests: asserted.length - failed.length,
    numFailedTests: failed.length,
    numPendingTests: 0,
    numTodoTests: 0,
    numRuntimeErrorTestSuites: 0,
    testResults: failed.map(({ title, value }) => ({
      name: 'bench',
      status: 'failed',
      message: `${title}: ${String(value)}`,
    })),
  };
}
