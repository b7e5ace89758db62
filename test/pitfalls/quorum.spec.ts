/**
 * Redlock. The numbers are those of a list of verified defects of lock libraries; what is tested is that ours does not
 * have them.
 *
 * 71  With one node silent, split votes wait for it, all processes let go and try again together, and none wins for
 *     seconds. Short leases hide it.
 * 72  A node that was away when the quorum was founded, and joins later, is taken for a founder after another has restarted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import { inWorld } from '../world/index.js';
import { QuorumEnvironment } from '../stores/quorum/quorum-environment.js';

let environment: QuorumEnvironment | undefined;

afterEach(async () => {
  for (const node of environment?.nodes ?? []) node.thaw();
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
