import { sampleOf } from '../harness/sample.mjs';

const FIGURES = ['throughput', 'p50', 'p99', 'max', 'commands', 'serverCpu'];

/** Redlock: a majority of independent servers. */
const redlock = (nodes) => ({
  id: `redlock-${nodes}`,
  title: `Redlock over ${nodes} nodes, one after another`,
  contenders: ['ours', 'redlock', 'redis-semaphore', 'redlock-universal'],
  stage: { nodes },
  figures: FIGURES,
  quick: [],
  async measure(cast) {
    await cast.warmUp('sequence', { name: 'warm', times: 100 });
    const performance = await cast.measure(async () => [
      await cast.play('sequence', { name: 'redlock', times: 800 }),
    ]);
    return sampleOf(performance);
  },
});

/** Several names in one acquisition. */
const multi = (names) => ({
  id: `multi-${names}`,
  title: `${names === 1 ? 'One name' : `${names} names`} as a multi-lock`,
  contenders: ['ours', 'redlock', 'redlock-universal'],
  figures: FIGURES,
  quick: ['ours'],
  async measure(cast) {
    await cast.warmUp('multi', { name: 'warm', names, times: 20 });
    const performance = await cast.measure(async () => [
      await cast.play('multi', { name: 'multi', names, times: Math.ceil(2_000 / (names + 4)) }),
    ]);
    return sampleOf(performance, { counted: false });
  },
});

export const redlocks = [redlock(3), redlock(5)];
export const multis = [multi(1), multi(10), multi(50)];
