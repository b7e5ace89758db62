import { now } from '../harness/clock.mjs';

/** Loops side by side, each taking and giving back a lock of its own: so many times, or for so many ms. */
export async function play({
  client,
  counter,
  params: { name, index, loops = 1, times = Infinity, time: duration = Infinity },
}) {
  const began = now();
  const waits = [];
  await Promise.all(
    Array.from({ length: loops }, async (_, loop) => {
      for (let time = 0; time < times && now() - began < duration; time++) {
        const asked = now();
        const release = await client.lock(`${name}:${index}:${loop}`);
        if (loops === 1) await counter.step(0);
        await release();
        waits.push(now() - asked);
      }
    }),
  );
  return { began, ended: now(), waits };
}
