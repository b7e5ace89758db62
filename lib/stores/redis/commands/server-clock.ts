/**
 * Tells when something happened that the server has dated, on this process's monotonic clock. The result is never later than
 * the event, so a lease that counts from there is on the safe side, even if the message took long.
 */
export class ServerClock {
  /** An upper bound of the server's time minus our time: a reply's date, minus the moment before its command left. */
  private offset = Infinity;
  private measuredAt = -Infinity;

  /**
   * Learns from a reply. The tightest bound counts, for a minute, because clocks drift. A bound is not true any more if the
   * date of a reply is further ahead of the moment in which the reply came: the server's clock has been set forward.
   */
  learn(serverTime: number, sentAt: number, receivedAt: number): void {
    const offset = serverTime + 1 - sentAt;
    const isTrue = serverTime - receivedAt <= this.offset;
    if (isTrue && offset > this.offset && sentAt - this.measuredAt < 60_000) return;
    this.offset = offset;
    this.measuredAt = sentAt;
  }

  /**
   * The moment of a date; -Infinity when it is not known. A date in the future means that the server's clock has been set
   * since it was last read. Then nothing tells how long the message took.
   */
  momentOf(serverTime: number, receivedAt: number): number {
    const moment = serverTime - this.offset;
    if (moment <= receivedAt) return moment;
    this.offset = Infinity;
    return -Infinity;
  }
}

/**
 * One clock for each server that has dated anything: those of a cluster differ. An unknown clock dates nothing. A promoted
 * replica, or a server on another machine, has the name of the former one, so no clock outlives a connection.
 */
export class ServerClocks {
  private readonly clocks = new Map<string, ServerClock>();

  of(node: string): ServerClock {
    let clock = this.clocks.get(node);
    if (clock === undefined) {
      clock = new ServerClock();
      this.clocks.set(node, clock);
    }
    return clock;
  }

  forget(): void {
    this.clocks.clear();
  }
}
