import { LockService } from '../../../../dist/index.js';
import { now } from '../harness/clock.mjs';
import { slices } from './slices.mjs';

const LOOPS = 64;
const work = async () => undefined;
const pair = (locks, n) => () =>
  locks.using(`order:${n}`, { label: 'order' }, () => locks.using(`stock:${n}`, { label: 'stock' }, work));

/**
 * µs of a lock under another one, both with their releases: in memory, so that nothing else is in the way, without a look at
 * the order and at deadlocks, with each of them, and with both; and on Redis, at its cheapest.
 */
export async function play({ client, params: { times } }) {
  const settings = [
    { lockOrder: 'off', deadlock: 'off' },
    { lockOrder: 'warn', deadlock: 'off' },
    { lockOrder: 'off', deadlock: 'break' },
  ];
  const services = settings.map((options) => new LockService({ store: 'memory', ...options }));
  const [without, ordered, watched] = await slices(times, ...services.map((locks) => pair(locks, 7)));
  for (const service of services) await service.close();
  return { without, ordered, watched, onRedis: await onRedis(client.service, times / 10) };
}

/** Side by side: a call alone mostly waits for the network, and the looks would seem to cost less. */
async function onRedis(locks, times) {
  const rounds = [];
  for (let done = 0; done < times; done += LOOPS * 10) {
    const began = now();
    await Promise.all(
      Array.from({ length: LOOPS }, async (_, loop) => {
        for (let time = 0; time < 10; time++) await pair(locks, loop)();
      }),
    );
    rounds.push(((now() - began) * 1000) / (LOOPS * 10));
  }
  return rounds.slice(Math.ceil(rounds.length / 4));
}
