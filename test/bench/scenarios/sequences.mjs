import { uncontended } from '../contenders.mjs';
import { sampleOf } from '../harness/sample.mjs';

const FIGURES = ['throughput', 'p50', 'p99', 'max', 'commands', 'clientCpu', 'serverCpu', 'violations'];

/** Many short ones: the ratios are close to 1, and other work on the machine should meet all alike. */
const ROUNDS = 9;

const sequence = (loops) =>
  async function measure(cast, { quick }) {
    const times = Math.ceil((quick ? 1_000 : 2_000) / loops);
    await cast.warmUp('sequence', { name: 'warm', loops, times: Math.ceil(300 / loops) });
    const performance = await cast.measure(async () => [
      await cast.play('sequence', { name: 'sequence', loops, times }),
    ]);
    return sampleOf(performance, { counted: loops === 1 });
  };

export const uncontendedScenario = {
  id: 'uncontended',
  title: 'Nobody else wants it: acquire and release, one after another',
  contenders: uncontended,
  rounds: ROUNDS,
  figures: FIGURES,
  quick: ['raw', 'ours', 'redlock'],
  measure: sequence(1),
};

export const parallelScenario = {
  id: 'parallel',
  title: '64 loops side by side, each with a lock of its own',
  contenders: uncontended,
  rounds: ROUNDS,
  figures: FIGURES.filter((figure) => figure !== 'violations'),
  quick: ['raw', 'ours'],
  measure: sequence(64),
};
