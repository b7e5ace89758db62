import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { until } from '../scenarios/until.js';
import type { TcpProxy } from '../support/tcp-proxy.js';
import { median, Troupe } from './troupe.js';

/** ms: far less than the 30 s of a lease, so whoever was this quick was woken. */
const WELL_BEFORE_THE_TTL = 5_000;

describe('Whoever waits for a lock on a quorum', () => {
  let troupe: Troupe;
  let proxies: TcpProxy[];
  let holder: LockService;
  let waiter: LockService;

  beforeEach(async () => {
    troupe = await Troupe.of(5);
    proxies = await troupe.proxies();
    holder = troupe.quorum();
    waiter = troupe.quorum(
      {},
      proxies.map(({ url }) => url),
    );
    await Promise.all([troupe.settled(holder), troupe.settled(waiter)]);
  });

  afterEach(() => troupe.end());

  const listening = (least: number) =>
    until(async () => {
      const channel = 'redisson_lock__channel:{lock:a}';
      const counts = await Promise.all(
        troupe.nodes.map(async (node) => Number((await node.client().pubsub('NUMSUB', channel))[1])),
      );
      return counts.filter((count) => count > 0).length >= least;
    });

  /** ms from the release to the grant. */
  async function handOver(): Promise<number> {
    const lease = await holder.acquire('a');
    const waiting = waiter.acquire('a');
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

  it.each([0, 1, 2, 3, 4])('is woken when only node %i is heard', async (heard) => {
    proxies.forEach((proxy, index) => {
      proxy.dropMessages(index !== heard);
    });
    expect(await handOver()).toBeLessThan(WELL_BEFORE_THE_TTL);
  });

  it('is woken when two of its subscriber connections are dead', async () => {
    await handOver();
    for (const node of troupe.nodes.slice(0, 2)) {
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
    const lease = await holder.acquire('a');
    const waiting = waiter.acquire('a');
    await listening(5);
    await Promise.all([0, 1].map((index) => troupe.node(index).kill()));
    const released = performance.now();
    await lease.release();
    await (await waiting).release();
    expect(performance.now() - released).toBeLessThan(WELL_BEFORE_THE_TTL);
  });

  it('gets it in turn with others that want it at the same time, and nobody starves in split votes', async () => {
    const services = [holder, waiter, ...[1, 2, 3].map(() => troupe.quorum())];
    const entries = new Entries();
    await Promise.all(
      services.flatMap((service) =>
        Array.from({ length: 4 }, async () => {
          for (let n = 0; n < 5; n++)
            await service.using('a', { waitTime: 25_000 }, () => entries.visit(n, '', 1));
        }),
      ),
    );
    expect(entries).toMatchObject({ most: 1, total: 100 });
  });
});
