import { describe, expect, it } from '@jest/globals';
import { isLockUnavailableError, type LockService, LockUnavailableError } from '../../../../lib/index.js';
import { QuorumEnvironment } from '../quorum-environment.js';

/** ms: a node is given a second then. */
const LEASE = 20_000;

const failureOf = async (promise: Promise<unknown>): Promise<LockUnavailableError> => {
  const error: unknown = await promise.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockUnavailableError);
  return error as LockUnavailableError;
};

const said = (error: LockUnavailableError) => error.outcomes.map(({ outcome }) => outcome);

describe('A quorum of five servers', () => {
  const environment = QuorumEnvironment.forEach(5);

  it('is unavailable when three answer too slowly, and takes back what they have granted', async () => {
    const proxies = await environment.proxies();
    const locks = environment.quorum(
      { leaseTime: LEASE },
      proxies.map(({ url }) => url),
    );
    await (await locks.acquire('b', { leaseTime: 60_000 })).release();
    for (const proxy of proxies.slice(0, 3)) proxy.replyDelay(3_000);
    const error = await failureOf(locks.tryAcquire('a', { leaseTime: 60_000 }));
    expect(said(error).filter((outcome) => outcome === 'timeout')).toHaveLength(3);
    await environment.isFreeEverywhere('a');
  });

  it('has no holder or one when it is split in two', async () => {
    const sides = [await environment.proxies(), await environment.proxies()] as const;
    const [left, right] = sides.map((proxies) =>
      environment.quorum(
        { leaseTime: LEASE },
        proxies.map(({ url }) => url),
      ),
    ) as [LockService, LockService];
    await Promise.all([environment.settled(left), environment.settled(right)]);
    const sees = (side: 0 | 1, seen: readonly number[]) => {
      sides[side].forEach((proxy, index) => {
        proxy.refuse(!seen.includes(index));
        if (!seen.includes(index)) proxy.cut();
      });
    };
    const race = (...waitTimes: number[]) =>
      Promise.all(
        [left, right].map((locks, side) =>
          locks.acquire('a', { waitTime: waitTimes[side] ?? 0 }).catch((error: unknown) => {
            if (!isLockUnavailableError(error)) throw error;
            return null;
          }),
        ),
      );

    sees(0, [0, 1]);
    sees(1, [3, 4]);
    expect(await race(2_000, 2_000)).toEqual([null, null]);

    sees(0, [0, 1, 2]);
    const [lease, none] = await race(60_000, 2_000);
    expect(lease?.held).toBe(true);
    expect(none).toBeNull();
    await lease?.release();
  });

  it('takes clients that the user has made, and leaves them to the user', async () => {
    const clients = environment.nodes.slice(0, 3).map((node) => node.client().duplicate());
    for (const client of clients) environment.client(client);
    const locks = environment.quorum({}, clients);
    const lease = await locks.acquire('a');
    expect(await environment.owners('a', environment.nodes.slice(0, 3))).toEqual(
      clients.map(() => lease.owner),
    );
    await lease.release();
    await locks.onApplicationShutdown();
    expect(await Promise.all(clients.map((client) => client.ping()))).toEqual(['PONG', 'PONG', 'PONG']);
  });
});
