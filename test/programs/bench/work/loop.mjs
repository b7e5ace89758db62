import { now } from '../harness/clock.mjs';

/**
 * Waiters who come back as soon as they were served, for `time` ms: how often each of them is, after a quarter in which
 * the last of them have come.
 */
export async function play({ client, counter, params: { name, waiters, hold, time } }) {
  const began = now();
  const [from, until] = [began + time / 4, began + time];
  const waits = [];
  const served = await Promise.all(
    Array.from({ length: waiters }, async () => {
      let count = 0;
      for (;;) {
        const asked = now();
        if (asked >= until) return count;
        const release = await lockAtLast(client, name, until);
        const granted = now();
        await counter.step(hold);
        await release();
        waits.push(granted - asked);
        // Who is served after the end was in the queue at the end: that is no turn of a full round.
        if (granted >= from && granted < until) count++;
      }
    }),
  );
  return { began, ended: now(), waits, served };
}

/** A library may give up. The caller asks again then, and its wait began when it asked first. */
async function lockAtLast(client, name, until) {
  for (;;) {
    try {
      return await client.lock(name);
    } catch (error) {
      if (now() >= until) throw error;
    }
  }
}
