import { sampleOf } from '../harness/sample.mjs';

const loops = (waiters) =>
  async function measure(cast) {
    await cast.warmUp('loop', { name: 'warm', waiters, time: 100 });
    const performance = await cast.measure(async () => [
      await cast.play('loop', { name: 'loop', waiters, time: 4_000 }),
    ]);
    return sampleOf(performance);
  };

const loopScenario = (id, title, processes, waiters) => ({
  id,
  title,
  contenders: [
    'ours',
    'fair',
    'no-handoff',
    'redlock-10ms',
    'redis-semaphore',
    'redlock-universal-lean-10ms',
    'simple-redis-mutex-10ms',
  ],
  stage: { processes },
  figures: ['throughput', 'p50', 'p99', 'max', 'commands', 'leastServed', 'mostServed', 'violations'],
  quick: [],
  rounds: 3,
  measure: loops(waiters),
});

export const loop4x8 = loopScenario(
  'loop-4x8',
  '4 processes with 8 who come back at once: who is served',
  4,
  8,
);
export const loop32x1 = loopScenario(
  'loop-32x1',
  '32 processes with one who comes back at once: who is served',
  32,
  1,
);
