import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../harness/clock.mjs';
import { percentile } from '../report/statistics.mjs';

/** ms with all nodes, and with fewer. */
const BEFORE = 2_000;
const AFTER = 4_000;

/**
 * Processes that take turns at one lock of a quorum, of which some nodes are stopped halfway. With a lease of 30 s: a node
 * has a share of the lease to answer, so that a short one hides what it costs to wait for it.
 */
const absence = (processes, nodes, gone) => ({
  id: `absence-${processes}x${gone}of${nodes}`,
  title: `Redlock, ${processes} processes that hold for 5 ms and come back after 5 ms, ${gone} of ${nodes} nodes frozen`,
  contenders: ['ours'],
  stage: { processes, nodes, ttl: 30_000 },
  figures: ['before', 'throughput', 'share', 'p50', 'p99', 'max', 'handOvers', 'gaveUp', 'violations'],
  quick: [],
  rounds: 3,
  async measure(cast) {
    const work = { name: 'absence', hold: 5, gap: 5 };
    await cast.warmUp('turns', { ...work, time: 300 });
    let frozen;
    const { acts, steps } = await cast.measure(async () => {
      const playing = cast.play('turns', { ...work, time: BEFORE + AFTER });
      await sleep(BEFORE);
      const absent = cast.servers.slice(0, gone);
      for (const server of absent) server.freeze();
      frozen = now();
      try {
        return await playing;
      } finally {
        for (const server of absent) server.thaw();
      }
    });
    const turns = acts.flatMap((act) => act.turns);
    const rate = (from, to) =>
      (turns.filter(({ granted }) => granted >= from && granted < to).length / (to - from)) * 1_000;
    const waits = turns.flatMap(({ asked, granted }) => (granted >= frozen ? [granted - asked] : []));
    const before = rate(frozen - BEFORE / 2, frozen);
    const throughput = rate(frozen, Math.max(...acts.map(({ ended }) => ended)));
    return {
      before,
      throughput,
      share: throughput / before,
      p50: percentile(waits, 0.5),
      p99: percentile(waits, 0.99),
      max: percentile(waits, 1),
      handOvers: (percentile(waits, 1) * throughput) / 1_000,
      gaveUp: acts.reduce((sum, act) => sum + act.gaveUp, 0),
      violations: turns.length - steps,
    };
  },
});

export const absences = [absence(2, 3, 1), absence(4, 3, 1), absence(4, 5, 2)];
