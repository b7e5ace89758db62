import { type History, lagWithin } from '../history.js';

/** ms */
export interface Bounds {
  /** That a lock may be free after the last fault while somebody waits: lease, failover, claim. */
  readonly recovery: number;
  /** The same where nothing has gone wrong at all. */
  readonly prompt: number;
}

/** What no lock can help, and so what a wait may take besides. */
export class Delays {
  /** No fault has kept an answer from anybody. */
  readonly calm: boolean;

  constructor(private readonly history: History) {
    this.calm = history.faults.every(({ severity }) => severity === 'harmless');
  }

  /** How long somebody may wait for what is free, from one moment to the other. */
  bound({ recovery, prompt }: Bounds, from: number, to: number): number {
    const { server } = this.history;
    // A server that is silent for so long has made a fault that nobody planned, such as a disk that stalls.
    const disturbed = server.lags.some(
      (silent) => silent.to - silent.from > prompt && silent.from < to && silent.to > from - recovery,
    );
    return (this.calm && !disturbed ? prompt : recovery) + this.within(from, to);
  }

  private within(from: number, to: number): number {
    const lag = Math.max(0, ...this.lagsOf(from - 100, to));
    // Who was not answered asks again after about as long a time.
    const silence = 2 * lagWithin(this.history.server, from - 100, to);
    return lag + silence;
  }

  /** For how long each process did not run. */
  lagsOf(from: number, to: number): number[] {
    return [...this.history.processes.values()].map((process) => lagWithin(process, from, to));
  }
}
