import { now } from '../harness/clock.mjs';
import { sampleOf } from '../harness/sample.mjs';

/** ms: the default; each is renewed at a third of it. */
const LEASE = 30_000;

const publishes = ({ calls }) => calls.publish ?? 0;

/** More and more processes with one waiter, each once. */
const processes = (count) => ({
  id: `growth-processes-${count}`,
  title: `${count} ${count === 1 ? 'process' : 'processes'} with one waiter`,
  contenders: ['ours', 'fair'],
  stage: { processes: count },
  measure: growth(1),
});

/** More and more waiters in one process. */
const waiters = (count) => ({
  id: `growth-waiters-${count}`,
  title: `${count} waiters in one process`,
  contenders: ['ours', 'fair'],
  measure: growth(count),
});

function growth(count) {
  return async (cast, { quick }) => {
    await cast.warmUp('burst', { name: 'warm', waiters: 40, hold: 1, limit: 10_000 });
    const performance = await cast.measure(async () => {
      const acts = [];
      const until = now() + (quick ? 200 : 700);
      do acts.push(await cast.play('burst', { name: 'growth', waiters: count, limit: 30_000 }));
      while (acts.length < 20 && now() < until);
      return acts;
    });
    const sample = sampleOf(performance);
    const { counts } = performance;
    return {
      ...sample,
      messages: publishes(counts) / sample.acquisitions,
      bytes: (counts.received + counts.sent) / sample.acquisitions,
    };
  };
}

/** More and more leases that one process holds. */
const leases = (count) => ({
  id: `growth-leases-${count}`,
  title: `${count} held leases`,
  contenders: ['ours'],
  stage: { fresh: true, ttl: LEASE },
  renews: true,
  rounds: 1,
  async measure(cast) {
    await cast.play('hold', { step: 'take', name: 'warm', leases: 500 });
    await cast.play('hold', { step: 'leave' });
    const memory = await cast.counts.memory();
    const [{ bytes }] = await cast.play('hold', { step: 'take', name: 'held', leases: count });
    // From now on each lease is renewed once.
    await cast.play('hold', { step: 'keep', time: 1_000 });
    const time = LEASE / 3 - 100;
    const { acts, counts } = await cast.measure(() => cast.play('hold', { step: 'keep', time }));
    const serverBytes = (await cast.counts.memory()) - memory;
    const [{ lost }] = await cast.play('hold', { step: 'leave' });
    return {
      commandsPerRenewal: counts.commands,
      traffic: counts.received + counts.sent,
      clientCpu: acts[0].cpu,
      serverCpu: counts.serverCpu,
      clientBytes: bytes,
      serverBytes,
      lost,
    };
  },
});

export const growths = [
  ...[1, 2, 4, 8, 16, 32].map(processes),
  ...[1, 10, 100, 1_000].map(waiters),
  ...[1, 100, 1_000, 10_000, 100_000].map(leases),
].map((scenario) => ({ figures: [], quick: [], rounds: 3, growth: true, ...scenario }));
