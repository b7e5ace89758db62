const LEASES = 10_000;
/** ms: a third of the lease. */
const PERIOD = 10_000;
/** ms: the messages of holds are asked for when the first is a second old. */
const WARM_UP = 2_000;
/** In each period, of the connection on which they come, however many leases there are. */
const PINGS = 2;
/** Once: whether they come from the server of the commands. The server learns a script for that, which sends one command. */
const QUESTION = 3;

/** Leases that a watchdog keeps: what that costs while nothing else happens. */
export const held = {
  id: 'held',
  title: '10,000 leases of 30 s, held under the watchdog',
  contenders: ['ours', 'redlock', 'redis-semaphore', 'redlock-universal', 'node-redisson'],
  stage: { ttl: 30_000, fresh: true },
  renews: true,
  // Long, and the same each time.
  rounds: 1,
  figures: ['commands10s', 'core', 'serverCore', 'lost'],
  quick: ['ours'],
  async measure(cast, { quick }) {
    // Fewer in the quick form, so that they are taken at about the same time on a busy machine too.
    const [leases, periods] = quick ? [2_000, 1] : [10_000, 3];
    // A little less than whole periods of renewal: no renewal falls into it once too often.
    const time = periods * PERIOD - 100;
    await cast.play('hold', { step: 'take', name: 'held', leases });
    // Once, when messages begin to be heard, the store is asked about all holds.
    await cast.play('hold', { step: 'keep', time: WARM_UP });
    const { acts, counts } = await cast.measure(() => cast.play('hold', { step: 'keep', time }));
    const [{ lost }] = await cast.play('hold', { step: 'leave' });
    const share = LEASES / leases;
    return {
      commands10s: ((counts.commands - QUESTION) / periods - PINGS) * share + PINGS,
      core: (acts[0].cpu / time) * 100 * share,
      serverCore: (counts.serverCpu / time) * 100 * share,
      lost,
    };
  },
};
