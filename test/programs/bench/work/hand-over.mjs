import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { now } from '../harness/clock.mjs';

const WARM_PINGS = 1_000;

/**
 * Two processes pass one lock to and fro for `time` ms, always from one that has rested for twice `idle` ms to one that waits.
 * Before each release the holder sends a PING, from the same rest.
 */
export async function play({ client, counter, peers, params: { name, index, time, idle, url } }) {
  const probe = new Redis(url, { lazyConnect: true });
  await probe.connect();
  // As well compiled as what it is compared with.
  for (let n = 0; n < WARM_PINGS; n++) await probe.ping();
  const [grants, releases, pings] = [[], [], []];
  const over = now() + time;
  let news = index === 0 ? 'granted' : await peers.hear();
  // Only when the other one has it, this one comes back to wait.
  while (news === 'granted') {
    const release = await client.lock(name);
    grants.push(now());
    const last = now() >= over;
    peers.tell(last ? 'over' : 'granted');
    await counter.step(idle);
    const asked = now();
    await probe.ping();
    pings.push(now() - asked);
    await sleep(idle);
    releases.push(now());
    await release();
    if (last) break;
    news = await peers.hear();
  }
  await probe.quit();
  return { grants, releases, pings };
}
