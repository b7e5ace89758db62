/**
 * The exit codes. `run` exits with the code of its command: 128 plus the number of a signal that ended it.
 * From 64 on, the codes are those of sysexits and of shells.
 */
export const EXIT = {
  done: 0,
  /** There is no such lock, or it is not held. `doctor`: warnings. */
  no: 1,
  /** `doctor`: errors. */
  errors: 2,
  /** The call is wrong. EX_USAGE */
  usage: 64,
  /** Another kind of lock, or no lock at all, stands under the name. EX_DATAERR */
  mismatch: 65,
  /** The store did not answer, or refused. EX_UNAVAILABLE */
  unavailable: 69,
  /** A fault of this program. EX_SOFTWARE */
  fault: 70,
  /** The output cannot be written. EX_IOERR */
  output: 74,
  /** The lock is still busy after the wait. EX_TEMPFAIL */
  busy: 75,
  notExecutable: 126,
  notFound: 127,
  /** And the number of the signal. */
  signal: 128,
} as const;
