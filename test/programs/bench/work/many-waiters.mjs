import { cpuUsage } from 'node:process';

/** µs of CPU that each of the last waiters of a full queue takes to join it. */
export async function play({ client: { service }, params: { kind, waiters, last } }) {
  const lock = kind === 'fair' ? service.getFairLock('many') : service.getLock('many');
  const lease = await lock.acquire();
  const leaver = new AbortController();
  const options = { waitTime: Infinity, maxWaiting: 2 * waiters, signal: leaver.signal };
  const join = () => service.runInScope(() => lock.acquire(options)).catch(() => undefined);
  const waits = Array.from({ length: waiters - last }, join);
  const before = cpuUsage();
  for (let n = 0; n < last; n++) waits.push(join());
  const { user, system } = cpuUsage(before);
  leaver.abort();
  await Promise.all(waits);
  await lease.release();
  return { joined: (user + system) / last };
}
