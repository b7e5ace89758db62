import { LockService } from '../../../../dist/index.js';
import { sideBySide } from './side-by-side.mjs';
import { slices } from './slices.mjs';

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
  const onRedis = await sideBySide(times / 10, (loop) => pair(client.service, loop)());
  return { without, ordered, watched, onRedis };
}
