import { sampleOf } from '../harness/sample.mjs';

const FIGURES = ['throughput', 'p50', 'p99', 'max', 'commands', 'serverCpu'];

/** Redlock: a majority of independent servers. */
const redlock = (nodes) => ({
  id: `redlock-${nodes}`,
  title: `Redlock over ${nodes} nodes, one after another`,
  contenders: ['by-hand', 'ours', 'redlock', 'redis-semaphore', 'redlock-universal'],
  stage: { nodes },
  figures: FIGURES,
  quick: [],
  async measure(cast, { quick }) {
    await cast.warmUp('sequence', { name: 'warm', times: 100 });
    await cast.runWarm('sequence', { name: 'warm' }, { quick });
    const performance = await cast.measure(async () => [
      await cast.play('sequence', { name: 'redlock', times: 800 }),
    ]);
    return sampleOf(performance);
  },
});

/** The same of 64 callers of one process, each with a lock of its own. */
const redlockLoops = (nodes) => ({
  id: `redlock-loops-${nodes}`,
  title: `Redlock over ${nodes} nodes, 64 loops side by side, each with a lock of its own`,
  contenders: ['ours', 'redlock'],
  stage: { nodes },
  figures: [...FIGURES, 'clientCpu'],
  quick: [],
  async measure(cast, { quick }) {
    await cast.warmUp('sequence', { name: 'warm', loops: 64, times: 10 });
    await cast.runWarm('sequence', { name: 'warm', loops: 64 }, { quick });
    const performance = await cast.measure(async () => [
      await cast.play('sequence', { name: 'redlock', loops: 64, times: 60 }),
    ]);
    return sampleOf(performance, { counted: false });
  },
});

/** Several names in one acquisition. */
const multi = (names) => ({
  id: `multi-${names}`,
  title: `${names === 1 ? 'One name' : `${names} names`} as a multi-lock`,
  contenders: ['least', 'ours', 'redlock', 'redlock-universal'],
  figures: FIGURES,
  quick: ['ours'],
  async measure(cast, { quick }) {
    await cast.warmUp('multi', { name: 'warm', names, times: 20 });
    await cast.runWarm('multi', { name: 'warm', names }, { quick });
    const performance = await cast.measure(async () => [
      await cast.play('multi', { name: 'multi', names, times: Math.ceil(10_000 / (names + 4)) }),
    ]);
    return sampleOf(performance, { counted: false });
  },
});

export const redlocks = [redlock(3), redlock(5), redlockLoops(3), redlockLoops(5)];
export const multis = [multi(1), multi(10), multi(50)];
