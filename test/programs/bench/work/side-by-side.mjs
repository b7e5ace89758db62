import { now } from '../harness/clock.mjs';

const LOOPS = 64;

/**
 * µs of a call, in rounds of 64 loops side by side: a call alone mostly waits for the network, and what is to be compared with
 * it would seem to cost less.
 * @param call gets the number of its loop
 */
export async function sideBySide(times, call) {
  const rounds = [];
  for (let done = 0; done < times; done += LOOPS * 10) {
    const began = now();
    await Promise.all(
      Array.from({ length: LOOPS }, async (_, loop) => {
        for (let time = 0; time < 10; time++) await call(loop);
      }),
    );
    rounds.push(((now() - began) * 1000) / (LOOPS * 10));
  }
  // The first quarter is there to warm up.
  return rounds.slice(Math.ceil(rounds.length / 4));
}
