import { now } from '../harness/clock.mjs';

/**
 * µs per call, in short slices: other work on the machine spoils some of them, not their median. Each call is first as often
 * as last.
 */
export async function slices(times, ...calls) {
  const SLICE = 200;
  const results = calls.map(() => []);
  for (let done = 0; done < times; done += SLICE) {
    const inTurn = [...calls.entries()];
    if ((done / SLICE) % 2 === 1) inTurn.reverse();
    for (const [n, call] of inTurn) {
      const began = now();
      for (let time = 0; time < SLICE; time++) await call();
      results[n].push(((now() - began) * 1000) / SLICE);
    }
  }
  // The first tenth is there to warm up.
  return results.map((result) => result.slice(Math.ceil(result.length / 10)));
}
