package locks;

final class Clock {
  private Clock() {}

  /** ms on the monotonic clock of the system, which Node's {@code process.hrtime} reads too. */
  static double now() {
    return System.nanoTime() / 1e6;
  }
}
