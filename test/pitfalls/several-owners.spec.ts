import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, afterEach, expect, it } from '@jest/globals';
import type { Lease } from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { QuorumEnvironment } from '../stores/quorum/quorum-environment.js';
import { inWorld } from '../world/index.js';
import { Stage, until } from './stage.js';

describe('Several locks', () => {
  /**
   * Several locks at once. The numbers are those of a list of defects that reviews found.
   *
   * 47  A waiting multi-lock keeps others from names that are free; two members with steady queues are never granted both:
   *     that is in test/scenarios/slow/multi-lock.spec.ts.
   */
  const stage = Stage.set();

  it('a waiting multi-lock keeps no free name from others, and holds nothing (pitfall 47)', async () => {
    const [holder, waiter, other] = [stage.service(), stage.service(), stage.service()];
    const lease = await holder.acquire('a');
    const waiting = waiter.acquire(['a', 'b']);
    // Each try wakes it, so that it is refused again and again.
    for (let n = 0; n < 20; n++) expect(await waiter.tryAcquire(['a', 'b'])).toBeNull();
    for (let n = 0; n < 5; n++) {
      const both = await other.tryAcquire(['b', 'd']);
      expect(both).not.toBeNull();
      await both?.release();
    }
    await lease.release();
    expect((await waiting).held).toBe(true);
  });
});

describe('Scopes', () => {
  /**
   * Who runs in whose scope. The numbers are those of a list of verified defects of lock libraries; what is tested is
   * that ours does not have them.
   *
   * 44  Code that happens to run in a lock's async context (a server's requests, a stream's subscribers, listeners)
   *     shares that lock's owner.
   */
  const stage = Stage.set();

  it('lets the requests of a server compete that a lock holder has started (pitfall 44)', async () => {
    const locks = stage.service();
    const entries = new Entries();
    await locks.using('leader', async () => {
      const server = createServer((request, response) => {
        const handle = async () => {
          const lease = await locks.acquire('order:7');
          await entries.visit(undefined, request.url, 50);
          await lease.release();
          response.end();
        };
        void handle();
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
      const first = fetch(url);
      // The others come while the first one holds the lock.
      await until(() => entries.total === 1);
      await Promise.all([first, fetch(url), fetch(url)]);
      server.close();
    });
    expect(entries).toMatchObject({ total: 3, most: 1 });
  });

  it('lets a listener compete that is told of a lock in the scope of another (pitfall 44)', async () => {
    const locks = stage.service();
    const asked: Promise<Lease | null>[] = [];
    locks.events$.subscribe((event) => {
      if (event.type === 'acquired' && event.name === 'job') asked.push(locks.tryAcquire('account:7'));
    });
    await locks.using('account:7', async () => {
      await locks.using('job', () => 1);
      expect(await Promise.all(asked)).toEqual([null]);
    });
  });
});

describe('Redlock', () => {
  /**
   * Redlock. The numbers are those of a list of verified defects of lock libraries; what is tested is that ours does not
   * have them.
   *
   * 71  With one node silent, split votes wait for it, all processes let go and try again together, and none wins for
   *     seconds. Short leases hide it.
   * 72  A node that was away when the quorum was founded, and joins later, is taken for a founder after another has restarted.
   */
  let environment: QuorumEnvironment | undefined;

  afterEach(async () => {
    await environment?.end();
    environment = undefined;
  });

  it('gives locks to one of two processes that get a node each while the third is silent (pitfall 71)', () =>
    inWorld(
      1,
      async ({ process, servers, now, pass }) => {
        const [silent, ...live] = servers;
        // Each process is far from a node of its own, so that the two meet at every lock.
        const both = live.map((server) => {
          const one = process({ leaseTime: 60_000 });
          one.slow('there', 20, server);
          return one;
        });
        await Promise.all(both.map(({ locks }) => locks.health()));
        await Promise.all(both.map(({ locks }, n) => locks.using(`first${String(n)}`, () => undefined)));
        silent!.pause(600_000);
        const begun = now();
        for (let n = 0; n < 12; n++)
          await Promise.all(both.map(({ locks }) => locks.using(`a${String(n)}`, () => pass(2))));
        // Each of the locks would wait for the time of a command, which is 2 s.
        expect(now() - begun).toBeLessThan((12 * 2_000 * 3) / 4);
      },
      { servers: 3 },
    ));

  it('takes no late node for a founder when another has restarted and the third is silent (pitfall 72)', async () => {
    const leaseTime = 4_000;
    const three = (environment = await QuorumEnvironment.of(3));
    const late = three.node(2);
    await late.kill();
    const holder = three.quorum({ leaseTime });
    const lease = await holder.acquire('a', { waitTime: 10 * leaseTime });
    await late.restart();
    await three.node(0).restart();
    three.node(1).freeze();
    const newcomer = three.quorum({ leaseTime });
    const held: boolean[] = [];
    const wake = setTimeout(() => {
      three.node(1).thaw();
    }, 600);
    for (const end = performance.now() + leaseTime / 2; performance.now() < end;) {
      await sleep(10);
      const got = await newcomer.tryAcquire('a').catch(() => null);
      // Looked at in the same turn.
      held.push(got !== null && lease.held);
      await got?.release();
    }
    clearTimeout(wake);
    expect(held).not.toContain(true);
  });
});
