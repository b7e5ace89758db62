import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { now } from '../harness/clock.mjs';

/** ms in which both processes fall idle. */
const IDLE = 8;

/**
 * Two processes pass one lock to and fro, always from one that rests to one that waits. Before each release the holder
 * sends a PING, from the same rest.
 */
export async function play({ client, counter, peers, params: { name, index, turns, url } }) {
  const probe = new Redis(url, { lazyConnect: true });
  await probe.connect();
  const grants = [];
  const releases = [];
  const pings = [];
  const began = now();
  if (index === 1) await peers.hear();
  for (let turn = 0; turn < turns; turn++) {
    const release = await client.lock(name);
    grants.push(now());
    peers.tell('granted');
    await counter.step(IDLE);
    const asked = now();
    await probe.ping();
    pings.push(now() - asked);
    await sleep(IDLE);
    releases.push(now());
    await release();
    // Only when the other one has it, this one comes back.
    if (turn < turns - 1 || index === 0) await peers.hear();
  }
  await probe.quit();
  return { began, ended: now(), grants, releases, pings };
}
