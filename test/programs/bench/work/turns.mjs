import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../harness/clock.mjs';

/** One caller that comes back `gap` ms after it has been served, for `time` ms. */
export async function play({ client, counter, params: { name, time, hold, gap } }) {
  const began = now();
  const turns = [];
  let gaveUp = 0;
  for (const until = began + time; now() < until; await sleep(gap)) {
    const asked = now();
    try {
      const release = await client.lock(name);
      turns.push({ asked, granted: now() });
      await counter.step(hold);
      await release();
    } catch {
      gaveUp++;
    }
  }
  return { began, ended: now(), turns, gaveUp };
}
