import { median } from '../report/statistics.mjs';

/** What happens without Redis. */
export const reEntry = {
  id: 're-entry',
  title: 'Entered again by the scope that holds it',
  contenders: ['ours'],
  figures: ['microseconds', 'commands'],
  quick: ['ours'],
  async measure(cast, { quick }) {
    const times = quick ? 5_000 : 20_000;
    await cast.warmUp('re-entry', { name: 'warm', times: 3_000 });
    const { acts, counts } = await cast.measure(() => cast.play('re-entry', { name: 're-entry', times }));
    // The lock itself: one acquisition, one release.
    return { microseconds: median(acts[0].entered), commands: (counts.commands - 2) / times };
  },
};

export const decorator = {
  id: 'decorator',
  title: '@DistributedLock beside using, on the memory store',
  contenders: ['ours'],
  figures: ['using', 'decorated', 'above'],
  quick: [],
  async measure(cast) {
    const [{ using, decorated }] = await cast.play('decorator', { times: 20_000 });
    const above = median(decorated.map((time, n) => time - using[n]));
    return { using: median(using), decorated: median(decorated), above };
  },
};
