const CONTENDERS = [
  'ours',
  'fair',
  'redlock',
  'redis-semaphore',
  'redlock-universal',
  'simple-redis-mutex',
  'node-redisson',
];

export const leaseMemory = {
  id: 'lease-memory',
  title: 'Memory of the process per held lease',
  contenders: CONTENDERS.filter((id) => id !== 'simple-redis-mutex'),
  stage: { fresh: true, ttl: 30_000 },
  rounds: 2,
  figures: ['bytes'],
  quick: [],
  async measure(cast) {
    const leases = 5_000;
    await cast.play('hold', { step: 'take', name: 'warm', leases: 500 });
    const [{ bytes }] = await cast.play('hold', { step: 'take', name: 'held', leases });
    await cast.play('hold', { step: 'leave' });
    return { bytes: bytes / leases };
  },
};

export const waiterMemory = {
  id: 'waiter-memory',
  title: 'Memory of the process per waiter',
  contenders: ['none', ...CONTENDERS],
  stage: { fresh: true, ttl: 30_000 },
  rounds: 2,
  figures: ['bytes'],
  quick: [],
  async measure(cast) {
    const waiters = 2_000;
    await cast.play('wait', { name: 'warm', waiters: 10 });
    const [{ bytes }] = await cast.play('wait', { name: 'wait', waiters });
    return { bytes: bytes / waiters };
  },
};
