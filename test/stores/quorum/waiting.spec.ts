import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { Entries } from '../../doubles/entries.js';
import { until } from '../../scenarios/until.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { median, QuorumEnvironment } from './quorum-environment.js';

/** ms: half of a lease, so a waiter that was this quick was woken. */
const WELL_BEFORE_THE_TTL = 15_000;
/** Of callers on a busy machine, where the steps of a test may take longer than the default. */
const PATIENCE = { waitTime: 60_000 };
jest.setTimeout(2 * PATIENCE.waitTime);

describe('A waiter for a lock on a quorum', () => {
  let environment: QuorumEnvironment;
  let proxies: TcpProxy[];
  let holder: LockService;
  let waiter: LockService;

  beforeEach(async () => {
    environment = await QuorumEnvironment.of(5);
    proxies = await environment.proxies();
    holder = environment.quorum();
    waiter = environment.quorum(
      {},
      proxies.map(({ url }) => url),
    );
    await Promise.all([environment.settled(holder), environment.settled(waiter)]);
  });

  afterEach(() => environment.end());

  const listening = (least: number) =>
    until(async () => {
      const channel = 'redisson_lock__channel:{lock:a}';
      const counts = await Promise.all(
        environment.nodes.map(async (node) => Number((await node.client().pubsub('NUMSUB', channel))[1])),
      );
      return counts.filter((count) => count > 0).length >= least;
    });

  /** ms from the release to the grant. */
  async function handOver(): Promise<number> {
    const lease = await holder.acquire('a', PATIENCE);
    const waiting = waiter.acquire('a', PATIENCE);
    await listening(3);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const released = performance.now();
    await lease.release();
    const next = await waiting;
    const took = performance.now() - released;
    await next.release();
    return took;
  }

  it('is woken by the release', async () => {
    const times: number[] = [];
    for (let n = 0; n < 9; n++) times.push(await handOver());
    expect(median(times)).toBeLessThan(WELL_BEFORE_THE_TTL / 10);
  });

  it.each([0, 1, 2, 3, 4])('is woken when only the messages of node %i arrive', async (heard) => {
    proxies.forEach((proxy, index) => {
      proxy.dropMessages(index !== heard);
    });
    expect(await handOver()).toBeLessThan(WELL_BEFORE_THE_TTL);
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
    expect(await handOver()).toBeLessThan(WELL_BEFORE_THE_TTL);
  });

  it('is woken when two nodes have died since it began to wait', async () => {
    const lease = await holder.acquire('a', PATIENCE);
    const waiting = waiter.acquire('a', PATIENCE);
    await listening(5);
    await Promise.all([0, 1].map((index) => environment.node(index).kill()));
    const released = performance.now();
    await lease.release();
    await (await waiting).release();
    expect(performance.now() - released).toBeLessThan(WELL_BEFORE_THE_TTL);
  });

  it('gets it in turn with others that want it at the same time, and none starves in split votes', async () => {
    const services = [holder, waiter, ...[1, 2, 3].map(() => environment.quorum())];
    const entries = new Entries();
    await Promise.all(
      services.flatMap((service) =>
        Array.from({ length: 4 }, async () => {
          for (let n = 0; n < 5; n++) await service.using('a', PATIENCE, () => entries.visit(n, '', 1));
        }),
      ),
    );
    expect(entries).toMatchObject({ most: 1, total: 100 });
  });

  describe('for several of them', () => {
    /** ms from the release of `b` to the grant of both. */
    async function grantedAfter(release: () => Promise<unknown>): Promise<number> {
      const waiting = waiter.acquire(['a', 'b'], PATIENCE);
      await new Promise((resolve) => setTimeout(resolve, 300));
      const released = performance.now();
      await release();
      const lease = await waiting;
      const took = performance.now() - released;
      await lease.release();
      return took;
    }

    it('is woken by the release of the one in its way, whatever a minority says of another', async () => {
      await environment.occupy('a', [0, 1], 60_000);
      const lease = await holder.acquire('b', PATIENCE);
      expect(await grantedAfter(() => lease.release())).toBeLessThan(WELL_BEFORE_THE_TTL / 2);
    });

    it('is woken by the release of either, where none is in the way of a majority', async () => {
      await environment.occupy('a', [0], 60_000);
      await environment.occupy('b', [1, 2], 60_000);
      const free = (name: string, indexes: number[]) =>
        Promise.all(
          indexes.map(async (index) => {
            await environment.node(index).client().del(`lock:${name}`);
            await environment.node(index).client().publish(`redisson_lock__channel:{lock:${name}}`, '0');
          }),
        );
      expect(await grantedAfter(() => free('b', [1, 2]))).toBeLessThan(WELL_BEFORE_THE_TTL / 2);
      await environment.occupy('b', [1, 2], 60_000);
      expect(await grantedAfter(() => free('a', [0]))).toBeLessThan(WELL_BEFORE_THE_TTL / 2);
    });
  });
});
