import { now } from '../harness/clock.mjs';

/** Several names as one lock, one after another. */
export async function play({ client, params: { name, names, times = Infinity, time: duration = Infinity } }) {
  const all = Array.from({ length: names }, (_, n) => `${name}:${n}`);
  const began = now();
  const waits = [];
  for (let time = 0; time < times && now() - began < duration; time++) {
    const asked = now();
    const release = await client.lockAll(all);
    await release();
    waits.push(now() - asked);
  }
  return { began, ended: now(), waits };
}
