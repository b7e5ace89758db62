import { afterEach, describe, expect, it } from '@jest/globals';
import { until } from '../../../scenarios/until.js';
import { now, overlaps, tokensGrow } from '../../../scenarios/history.js';
import type { HoldRecord, RefusalRecord, Worker } from '../../../support/worker.js';
import { median, QuorumEnvironment } from '../quorum-environment.js';

/** ms that each process holds the lock, and for which it stays away afterwards. */
const HOLD = 5;
const GAP = 5;
const LONGEST = 60_000;
/** ms that a node with the default lease has for one command. */
const NODE_TIME = 1_500;

/** Waits for holds of every process: on a busy machine they take a while to start, and a while for each. */
async function goOn(workers: readonly Worker[], holds = 20): Promise<void> {
  const counts = () => Promise.all(workers.map((worker) => worker.call<number>('holdsSoFar')));
  const before = await counts();
  await until(async () => {
    const more = (await counts()).map((count, n) => count - before[n]!);
    return Math.min(...more) > 0 && more.reduce((a, b) => a + b) >= holds;
  });
}

/** ms from one grant to the next. */
const handOvers = (holds: readonly HoldRecord[]): number[] =>
  holds.slice(1).map(({ granted }, n) => granted - holds[n]!.granted);

/**
 * With the default lease, because a node has 5 % of the lease to answer: with a short lease, waiting for a frozen node goes
 * unnoticed.
 */
describe('Processes that contend for one lock of a quorum', () => {
  let environment: QuorumEnvironment;

  afterEach(() => environment.end());

  it.each([
    { gone: [1], of: 3, how: 'killed', processes: 2 },
    { gone: [0], of: 3, how: 'killed', processes: 4 },
    { gone: [2], of: 3, how: 'frozen', processes: 2 },
    { gone: [0], of: 3, how: 'frozen', processes: 4 },
    { gone: [0, 1], of: 5, how: 'frozen', processes: 4 },
  ] as const)('do not notice that $gone.length of $of are $how ($processes processes)', async (scene) => {
    environment = await QuorumEnvironment.of(scene.of);
    const first = environment.quorum();
    await environment.settled(first);
    const workers = await environment.workers(scene.processes, { url: environment.urls });
    const running = workers.map((worker) =>
      worker.call<(HoldRecord | RefusalRecord)[]>('loop', 'a', LONGEST, {}, HOLD, GAP),
    );
    await goOn(workers);
    const gone = now();
    await Promise.all(
      scene.gone.map(async (index) => {
        if (scene.how === 'frozen') environment.node(index).freeze();
        else await environment.node(index).kill();
      }),
    );
    await goOn(workers, 60);
    await Promise.all(workers.map((worker) => worker.call('stop')));
    const records = (await Promise.all(running)).flat();
    const holds = records.filter((record) => 'granted' in record).toSorted((a, b) => a.granted - b.granted);

    expect(records.filter((record) => 'refused' in record)).toEqual([]);
    expect(overlaps(holds)).toEqual([]);
    expect(tokensGrow(holds)).toBe(true);
    // Half of them, on any machine: each would take as long as the node that is away has to answer.
    const after = holds.filter(({ granted }) => granted >= gone);
    expect(median(handOvers(after))).toBeLessThan(NODE_TIME);
  });
});
