import { redissons } from '../contenders.mjs';
import { sampleOf } from '../harness/sample.mjs';

/** Compared in every shape; a library that polls does so every 10 ms. */
const CONTENDERS = ['ours', 'fair', 'redis-semaphore', 'redlock-10ms', ...redissons];
/** Compared in two shapes only: each contender takes three seconds a round. */
const OTHERS = ['no-handoff', 'redlock-universal-lean-10ms', 'simple-redis-mutex-10ms'];

const loops = (waiters, hold) =>
  async function measure(cast, { quick }) {
    // Held for a while, so that all of them have waited.
    await cast.warmUp('loop', { name: 'warm', waiters, hold: 2, time: 200 });
    const performance = await cast.measure(async () => [
      await cast.play('loop', { name: 'loop', waiters, hold, time: quick ? 1_000 : 3_000 }),
    ]);
    return sampleOf(performance);
  };

/** Processes whose callers want one lock, and want it again as soon as they have released it. */
const loopScenario = (processes, waiters, { hold = 0, others = [], quick = [] } = {}) => ({
  shape: `${processes} × ${waiters}${hold > 0 ? `, held for ${hold} ms` : ''}`,
  id: `loop-${processes}x${waiters}${hold > 0 ? `-${hold}ms` : ''}`,
  title: [
    `${processes} processes with ${waiters === 1 ? 'one caller that comes' : `${waiters} callers that come`} back at once`,
    ...(hold > 0 ? [`holding it for ${hold} ms`] : []),
  ].join(', '),
  contenders: [...CONTENDERS, ...others],
  stage: { processes },
  figures: [
    'throughput',
    'p50',
    'p99',
    'max',
    'commands',
    'leastServed',
    'mostServed',
    'processShare',
    'callerShare',
    'violations',
  ],
  quick,
  rounds: 3,
  measure: loops(waiters, hold),
});

export const loopScenarios = [
  loopScenario(16, 2, { hold: 2, quick: ['ours'] }),
  loopScenario(16, 2),
  loopScenario(8, 4),
  loopScenario(4, 8, { others: OTHERS }),
  loopScenario(32, 1, { others: OTHERS, quick: ['ours', 'fair'] }),
];
