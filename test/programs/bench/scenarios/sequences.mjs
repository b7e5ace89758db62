import { uncontended } from '../contenders.mjs';
import { sampleOf } from '../harness/sample.mjs';

const FIGURES = ['throughput', 'p50', 'p99', 'max', 'commands', 'clientCpu', 'serverCpu', 'violations'];

/** Many short ones: the ratios are close to 1, and other work on the machine should meet all alike. */
const ROUNDS = 9;

/** @param pairs in the full form; so many that a loop takes no less than some tenths of a second */
const sequence = (loops, pairs) =>
  async function measure(cast, { quick }) {
    const times = Math.ceil(pairs / loops / (quick ? 2 : 1));
    await cast.warmUp('sequence', { name: 'warm', loops, times: Math.ceil(times / 5) });
    await cast.runWarm('sequence', { name: 'warm', loops }, { quick });
    const performance = await cast.measure(async () => [
      await cast.play('sequence', { name: 'sequence', loops, times }),
    ]);
    return sampleOf(performance, { counted: loops === 1 });
  };

export const uncontendedScenario = {
  id: 'uncontended',
  title: 'Without contention: acquire and release, one after another',
  contenders: uncontended,
  rounds: ROUNDS,
  figures: FIGURES,
  quick: ['raw', 'by-hand', 'ours', 'redlock'],
  measure: sequence(1, 2_000),
};

const BESIDE_OTHERS = FIGURES.filter((figure) => figure !== 'violations');

export const parallelScenario = {
  id: 'parallel',
  title: '64 loops side by side, each with a lock of its own',
  contenders: uncontended,
  rounds: ROUNDS,
  figures: BESIDE_OTHERS,
  quick: ['raw', 'by-hand', 'ours'],
  measure: sequence(64, 12_800),
};

export const crowdedScenario = {
  id: 'parallel-256',
  title: '256 loops side by side, each with a lock of its own',
  contenders: ['raw', 'by-hand', 'ours', 'redlock'],
  rounds: ROUNDS,
  figures: BESIDE_OTHERS,
  quick: ['raw', 'ours'],
  measure: sequence(256, 25_600),
};

/** Nothing is compiled yet, and the server does not know the scripts. */
export const coldScenario = {
  id: 'cold-64',
  title: '64 loops side by side, the first half second of a process',
  contenders: ['raw', 'by-hand', 'ours', 'redlock'],
  rounds: ROUNDS,
  stage: { fresh: true },
  figures: BESIDE_OTHERS,
  quick: [],
  async measure(cast) {
    // The commands are learnt with another connection: here nothing may come before what is measured.
    const performance = await cast.measure(async () => [
      await cast.play('sequence', { name: 'cold', loops: 64, time: 500 }),
    ]);
    return sampleOf(performance, { counted: false });
  },
};
