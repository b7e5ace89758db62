import { contended, contenderOf } from '../contenders.mjs';
import { percentile, median } from '../report/statistics.mjs';

/** ms in which both processes fall idle. */
const IDLE = 8;

/** From one process that rests to another that waits, beside a PING from the same rest. */
export const handOver = {
  id: 'hand-over',
  title: 'From one process to another that waits, both idle before',
  contenders: [
    'publish',
    'publish-take',
    'queued',
    'queued-fair',
    ...contended.filter((id) => id !== 'no-handoff' && id !== 'node-redisson'),
  ],
  stage: { processes: 2 },
  figures: ['ping', 'p50', 'p99', 'max', 'pings', 'violations'],
  quick: ['publish', 'publish-take', 'ours', 'fair'],
  async measure(cast, { quick, contender }) {
    const [{ url }] = cast.servers;
    const params = { name: 'hand-over', url };
    await cast.warmUp('hand-over', { ...params, idle: IDLE, time: 100 });
    // Without a rest, for as many of them as there can be. A bare PUBLISH that comes before its SUBSCRIBE would be lost.
    if (contenderOf(contender).module === 'publish')
      await cast.runWarm('hand-over', { ...params, idle: 4 }, { quick });
    else await cast.runWarm('loop', { name: 'warm', waiters: 1, hold: 0 }, { quick });
    const { acts, steps } = await cast.measure(async () => [
      await cast.play('hand-over', { ...params, idle: IDLE, time: quick ? 500 : 1_500 }),
    ]);
    const [one, other] = acts[0];
    const latencies = [
      ...latenciesOf(one.releases, other.grants),
      ...latenciesOf(other.releases, one.grants),
    ];
    const ping = median([...one.pings, ...other.pings]);
    return {
      ping,
      p50: median(latencies),
      p99: percentile(latencies, 0.99),
      max: percentile(latencies, 1),
      pings: median(latencies) / ping,
      violations: one.grants.length + other.grants.length - steps,
    };
  },
};

/** Each grant with the release before it. */
const latenciesOf = (releases, grants) =>
  grants.flatMap((granted) => {
    const released = releases.findLast((moment) => moment < granted);
    return released === undefined ? [] : [granted - released];
  });
