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

export const telemetry = {
  id: 'telemetry',
  title: 'Tracing channels that nothing listens to, and spans and metrics',
  contenders: ['ours'],
  figures: ['without', 'unheard', 'heard', 'onRedis', 'percent'],
  quick: ['ours'],
  async measure(cast, { quick }) {
    const [{ without, unheard, heard, onRedis }] = await cast.play('telemetry', {
      times: quick ? 60_000 : 200_000,
    });
    // What goes by in both builds, such as a collection of garbage, is in both terms of a difference.
    const above = median(unheard.map((time, n) => time - without[n]));
    const [own, other, listened, whole] = [without, unheard, heard, onRedis].map(median);
    return { without: own, unheard: other, heard: listened, onRedis: whole, percent: (above / whole) * 100 };
  },
};

export const nested = {
  id: 'nested',
  title: 'A lock under another one: its order, and deadlocks',
  contenders: ['ours'],
  figures: ['nestedWithout', 'ordered', 'watched', 'nestedOnRedis', 'orderedPercent', 'watchedPercent'],
  quick: ['ours'],
  async measure(cast, { quick }) {
    const [{ without, ordered, watched, onRedis }] = await cast.play('nested', {
      times: quick ? 40_000 : 150_000,
    });
    const above = (times) => median(times.map((time, n) => time - without[n]));
    // Of one acquisition: both of the pair have about the same.
    const one = median(onRedis) / 2;
    return {
      nestedWithout: median(without),
      ordered: median(ordered),
      watched: median(watched),
      nestedOnRedis: median(onRedis),
      orderedPercent: (above(ordered) / one) * 100,
      watchedPercent: (above(watched) / one) * 100,
    };
  },
};
