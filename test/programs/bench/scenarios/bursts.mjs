import { contended } from '../contenders.mjs';
import { now } from '../harness/clock.mjs';
import { sampleOf } from '../harness/sample.mjs';

/** ms after which a burst that is not over is given up. */
const LIMIT = 10_000;

const bursts = (waiters, hold) =>
  async function measure(cast, { quick }) {
    const [most, time] = quick ? [5, 400] : [15, 700];
    // So many, and for so long, that a process has to take a place in the queue.
    await cast.warmUp('burst', { name: 'warm', waiters: Math.min(waiters, 40), hold: 1, limit: LIMIT });
    const performance = await cast.measure(async () => {
      const acts = [];
      const until = now() + time;
      do acts.push(await cast.play('burst', { name: 'burst', waiters, hold, limit: LIMIT }));
      while (acts.length < most && now() < until && acts.at(-1).every(({ unserved }) => unserved === 0));
      return acts;
    });
    return sampleOf(performance);
  };

const burstScenario = (id, title, processes, waiters, hold = 0) => ({
  id,
  title,
  contenders: contended,
  stage: { processes },
  figures: [
    'throughput',
    'p50',
    'p99',
    'max',
    'commands',
    'clientCpu',
    'serverCpu',
    'gaveUp',
    'unserved',
    'violations',
  ],
  quick: ['ours', 'fair', 'no-handoff'],
  measure: bursts(waiters, hold),
});

export const crowd = burstScenario('crowd', '100 waiters in one process, each once', 1, 100);
export const fleet4x8 = burstScenario('4x8', '4 processes with 8 waiters, each once', 4, 8);
export const fleet32x1 = burstScenario('32x1', '32 processes with one waiter, each once', 32, 1);
export const hold2ms = burstScenario('hold', '4 processes with 8 waiters, each holding it for 2 ms', 4, 8, 2);
/** What the counter has to catch. */
export const control = {
  ...burstScenario('control', 'The same without a lock: the counter has to notice', 4, 8, 2),
  contenders: ['none'],
  figures: ['violations'],
  quick: ['none'],
  rounds: 1,
};
