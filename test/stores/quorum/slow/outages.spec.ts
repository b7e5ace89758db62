import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isLockUnavailableError, type LockService, LockUnavailableError } from '../../../../lib/index.js';
import { QuorumEnvironment } from '../quorum-environment.js';

/** ms: a node is given a second then. */
const LEASE = 20_000;

async function rounds(locks: LockService, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const asked = performance.now();
    await (await locks.acquire(`round-${String(n)}`)).release();
    times.push(performance.now() - asked);
  }
  return times;
}

const failureOf = async (promise: Promise<unknown>): Promise<LockUnavailableError> => {
  const error: unknown = await promise.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockUnavailableError);
  return error as LockUnavailableError;
};

const said = (error: LockUnavailableError) => error.outcomes.map(({ outcome }) => outcome);

describe('A quorum of five servers', () => {
  let environment: QuorumEnvironment;

  beforeEach(async () => {
    environment = await QuorumEnvironment.of(5);
  });

  afterEach(() => environment.end());

  it('gives up at the end of the wait time with three dead, and says what each has answered', async () => {
    const locks = environment.quorum({ leaseTime: LEASE });
    await environment.settled(locks);
    await Promise.all([0, 2, 4].map((index) => environment.node(index).kill()));
    const error = await failureOf(locks.acquire('a', { waitTime: 2_000 }));
    expect(said(error)).toEqual(['error', 'granted', 'error', 'granted', 'error']);
    expect(error.outcomes.map(({ node }) => node)).toEqual(
      environment.nodes.map(({ port }) => `127.0.0.1:${String(port)}`),
    );
    expect(error.outcomes[0]?.error).toBeDefined();
    // Asked once, it says so as well.
    expect(said(await failureOf(locks.tryAcquire('a')))).toEqual(said(error));
    expect(await environment.owners('a', [environment.node(1), environment.node(3)])).toEqual([
      undefined,
      undefined,
    ]);
  });

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

  it('keeps busy and unavailable apart: a minority that refuses is no answer of a majority', async () => {
    const locks = environment.quorum({ leaseTime: LEASE });
    await rounds(locks, 1);
    await environment.isFreeEverywhere('round-0');
    await environment.occupy('a', [0]);
    await Promise.all([1, 2, 3].map((index) => environment.node(index).kill()));
    expect(said(await failureOf(locks.tryAcquire('a')))).toEqual([
      'taken',
      'error',
      'error',
      'error',
      'granted',
    ]);
  });

  it('tells a holder that was stopped for longer than its lease, before it does anything else', async () => {
    const [holder, locks] = [
      await environment.worker({ url: environment.urls, service: { leaseTime: 6_000 } }),
      environment.quorum({ leaseTime: 6_000 }),
    ];
    const { id } = await holder.call<{ id: number }>('acquire', 'a');
    expect(await holder.call('state', id)).toMatchObject({ held: true, aborted: false });
    holder.freeze();
    const lease = await locks.acquire('a');
    const looking = holder.call('state', id);
    holder.thaw();
    expect(await looking).toMatchObject({ held: false, aborted: true, remainingTime: 0 });
    expect(lease.held).toBe(true);
    await sleep(500);
    // Nothing that the former one does on waking touches the present one.
    expect(new Set(await environment.owners('a'))).toEqual(new Set([lease.owner]));
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
    for (const client of clients)
      environment.add(() => {
        client.disconnect();
      });
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
