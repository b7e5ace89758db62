import type { Server } from '../../stores/redis/connection/deployment.js';

export interface Latency {
  /** ms */
  readonly median: number;
  readonly p99: number;
  readonly count: number;
}

const COUNT = 100;
/** ms for all of them: a server far away answers fewer. */
const TIME = 2_000;

/** One PING after the other, as a caller sees them. Rejects when the server does not answer. */
export async function latencyOf(server: Server): Promise<Latency> {
  const times: number[] = [];
  const end = performance.now() + TIME;
  while (times.length < COUNT && (times.length === 0 || performance.now() < end)) {
    const sentAt = performance.now();
    // A command that each user may send.
    await server.send((client) => client.ping());
    times.push(performance.now() - sentAt);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => {
    const time = times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? NaN;
    return Math.round(time * 1_000) / 1_000;
  };
  return { median: at(0.5), p99: at(0.99), count: times.length };
}
