import { expect, it } from '@jest/globals';
import { inWorld } from '../index.js';

it('a world has room for a hundred processes and a thousand waiters', async () => {
  let served = 0;
  let begun = process.cpuUsage();
  const { time } = await inWorld(11, async ({ process: start, pass, now }) => {
    const all = Array.from({ length: 100 }, () => start());
    await Promise.all(all.map(({ locks }) => locks.health()));
    const end = now() + 1_000;
    begun = process.cpuUsage();
    const take = async ({ locks }: (typeof all)[number]) => {
      while (now() < end) await locks.using('k', { waitTime: 60_000 }, () => pass(1));
      served++;
    };
    await Promise.all(all.map(take));
  });
  const { user, system } = process.cpuUsage(begun);
  expect(served).toBe(100);
  const cost = ((user + system) / 1e6).toFixed(1);
  console.info(`100 processes on one lock: ${cost} s of a core until ${time.toFixed(0)} ms of virtual time`);
  const crowd = await inWorld(12, async ({ process: start }) => {
    const all = Array.from({ length: 4 }, () => start());
    const wait = async ({ locks }: (typeof all)[number]) => {
      await locks.using('k', { waitTime: 600_000 }, () => served++);
    };
    await Promise.all(all.flatMap((one) => Array.from({ length: 250 }, () => wait(one))));
  });
  expect(served).toBe(1_100);
  expect(crowd.events).toBeLessThan(50_000);
});
