import { expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryLockStore } from '../../lib/index.js';

const QUEUE = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;
const ask = { ...QUEUE, place: undefined, beside: undefined };

interface Books {
  holds: Map<string, unknown>;
  queues: Map<string, unknown>;
  turns: { reservations: Map<string, unknown> };
}

it('forgets names that are over and that nobody asks for again, and nothing else', async () => {
  const store = new MemoryLockStore();
  const kept = { name: 'kept', owner: 'me:1', leaseTime: 60_000 };
  await store.acquire(kept);
  await store.acquire({ ...kept, name: 'kept queue', queue: ask });
  for (let n = 0; n < 5_000; n++) {
    const [name, queued] = [`plain ${String(n)}`, `queue ${String(n)}`];
    await store.acquire({ name, owner: 'me:2', leaseTime: 1 });
    await store.acquire({ name: queued, owner: 'me:2', leaseTime: 1_000, queue: ask });
    await store.release({ name: queued, owner: 'me:2', queue: QUEUE });
    await store.acquireAll({
      names: ['kept', `turn ${String(n)}`],
      owner: 'me:3',
      leaseTime: 1,
      turn: { asker: 'me', reserveFor: 1 },
    });
    if (n % 500 === 0) await sleep(2);
  }
  const { holds, queues, turns } = store as unknown as Books;
  for (const { size } of [holds, queues, turns.reservations]) expect(size).toBeLessThanOrEqual(2_000);
  expect((await store.inspect('kept'))?.holders).toHaveLength(1);
  expect((await store.inspect('kept queue'))?.holders).toHaveLength(1);
});
