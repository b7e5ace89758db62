import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../harness/clock.mjs';

/**
 * Waiters who all want one lock, each once: what is measured is the hand-over, not who takes it again.
 * After `limit` ms the rest is given up.
 */
export async function play({ client, counter, params: { name, waiters, hold = 0, limit } }) {
  const began = now();
  let ended = began;
  const waits = [];
  const errors = [];
  const everybody = Promise.all(
    Array.from({ length: waiters }, async () => {
      let release;
      try {
        release = await client.lock(name);
      } catch (error) {
        errors.push(error.message);
        return;
      }
      waits.push(now() - began);
      await counter.step(hold);
      ended = now();
      await release();
    }),
  );
  const over = new AbortController();
  await Promise.race([everybody, sleep(limit, undefined, { signal: over.signal })]);
  over.abort();
  const gaveUp = errors.length;
  const unserved = waiters - waits.length - gaveUp;
  return { began, ended: unserved > 0 ? now() : ended, waits, gaveUp, unserved, error: errors[0] };
}
