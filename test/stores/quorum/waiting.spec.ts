import { beforeEach, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { QuorumEnvironment } from './quorum-environment.js';
import { first } from '../../support/tier.js';
import { inWorld } from '../../world/index.js';

/** ms: longer than any caller waits, so a waiter that gets the lock was woken. */
const LONG = 300_000;

describe('A waiter for a lock on a quorum', () => {
  const environment = QuorumEnvironment.forEach(5);
  let proxies: TcpProxy[];
  let holder: LockService;
  let waiter: LockService;

  beforeEach(async () => {
    proxies = await environment.proxies();
    holder = environment.quorum({ leaseTime: LONG });
    waiter = environment.quorum(
      { leaseTime: LONG },
      proxies.map(({ url }) => url),
    );
    await Promise.all([environment.settled(holder), environment.settled(waiter)]);
  });

  const listening = (least: number) =>
    until(async () => {
      const channel = 'redisson_lock__channel:{lock:a}';
      const counts = await Promise.all(
        environment.nodes.map(async (node) => Number((await node.client().pubsub('NUMSUB', channel))[1])),
      );
      return counts.filter((count) => count > 0).length >= least;
    });

  async function handOver(): Promise<void> {
    const lease = await holder.acquire('a');
    const waiting = waiter.acquire('a');
    await listening(3);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await lease.release();
    await (await waiting).release();
  }

  it.each(first(2, [0, 4, 1, 2, 3]))('is woken when only the messages of node %i arrive', async (heard) => {
    proxies.forEach((proxy, index) => {
      proxy.dropMessages(index !== heard);
    });
    await handOver();
  });

  it('is woken when two of its subscriber connections are dead', async () => {
    await handOver();
    for (const node of environment.nodes.slice(0, 2)) {
      const clients = String(await node.client().call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
        .trim()
        .split('\n').length;
      const all = String(await node.client().call('CLIENT', 'LIST'))
        .trim()
        .split('\n').length;
      await node.client().config('SET', 'maxclients', all - clients);
      await node.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    }
    await handOver();
  });

  describe('for several of them', () => {
    async function expectGrantAfter(release: () => Promise<unknown>): Promise<void> {
      const waiting = waiter.acquire(['a', 'b']);
      await new Promise((resolve) => setTimeout(resolve, 300));
      await release();
      await (await waiting).release();
    }

    it('is woken by the release of the one in its way, whatever a minority says of another', async () => {
      await environment.occupy('a', [0, 1], LONG);
      const lease = await holder.acquire('b');
      await expectGrantAfter(() => lease.release());
    });
  });
});

it('A lease that is longer than all nodes have acknowledged is refused by name, and renewed leases are shorter, until the missing node is back', () =>
  inWorld(
    1,
    async ({ process, servers, until }) => {
      await process({ leaseTime: 2_000 }).locks.using('a', () => undefined);
      const [one, other] = [process({ leaseTime: 15_000 }), process({ leaseTime: 15_000 })];
      const [connect] = [one, other].map((each) => each.cut(servers[2]));
      const renewed = await one.locks.acquire('a');
      expect(renewed.remainingTime()).toBeLessThanOrEqual(2_000);
      const long = { leaseTime: 15_000, waitTime: 1_000 };
      const message = expect.stringMatching(/15000 ms.*2000 ms.*missing: /) as unknown;
      for (const call of [
        one.locks.tryAcquire('b', long),
        one.locks.acquire('b', long),
        renewed.extend(15_000),
      ])
        await expect(call).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', cause: { message } });
      const forever = { ...long, waitTime: Infinity };
      const [waiting, refused] = [one, other].map(({ locks }) => locks.acquire('b', forever));
      await Promise.all([
        other.locks.close(),
        expect(refused).rejects.toMatchObject({ code: 'LOCK_CLOSED' }),
      ]);
      connect!();
      await expect(waiting).resolves.toMatchObject({ held: true });
      await until(() => renewed.remainingTime() > 2_000);
    },
    { servers: 3 },
  ));

it('a node that stands still delays no hand-over once it is known, also for callers that come back again and again', async () => {
  const granted: number[] = [];
  await inWorld(
    1,
    async ({ process, servers, pass, now }) => {
      const takeTurns = async (locks: LockService) => {
        while (now() < 4_000) {
          const lease = await locks.acquire('a');
          granted.push(now());
          await pass(5);
          await lease.release();
          await pass(5);
        }
      };
      const all = [process(), process(), process(), process()].map(({ locks }) => takeTurns(locks));
      await pass(2_000);
      servers[0]!.pause(10_000);
      await Promise.all(all);
    },
    { servers: 3, options: { leaseTime: 30_000 } },
  );
  const from = (begin: number) =>
    granted.filter((moment) => moment >= begin && moment < begin + 1_000).length;
  expect(from(2_500) / from(1_000)).toBeGreaterThan(0.8);
});
