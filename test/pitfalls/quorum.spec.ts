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
import { QuorumEnvironment } from '../stores/quorum/quorum-environment.js';

let environment: QuorumEnvironment;

afterEach(async () => {
  for (const node of environment.nodes) node.thaw();
  await environment.end();
});

it('gives locks to one of two processes that get a node each while the third is silent (pitfall 71)', async () => {
  environment = await QuorumEnvironment.of(3);
  const [silent = '', ...live] = environment.urls;
  // Each process is far from a node of its own, so that the two meet at every lock.
  const far = (await environment.proxies()).slice(1);
  for (const proxy of far) proxy.requestDelay(20);
  const services = far.map(({ url }, n) =>
    environment.quorum({ leaseTime: 60_000 }, [silent, ...live.with(n, url)]),
  );
  await Promise.all(services.map((service) => environment.settled(service)));
  environment.node(0).freeze();
  const begun = performance.now();
  for (let n = 0; n < 12; n++) {
    const names = services.map((service) => service.using(`a${String(n)}`, () => sleep(2)));
    await Promise.all(names);
  }
  // Each of the locks would wait for the time of a command, which is 2 s.
  expect(performance.now() - begun).toBeLessThan((12 * 2_000 * 3) / 4);
}, 90_000);

it('takes no late node for a founder when another has restarted and the third is silent (pitfall 72)', async () => {
  const leaseTime = 4_000;
  environment = await QuorumEnvironment.of(3);
  const late = environment.node(2);
  await late.kill();
  const holder = environment.quorum({ leaseTime });
  const lease = await holder.acquire('a', { waitTime: 10 * leaseTime });
  await late.restart();
  await environment.node(0).restart();
  environment.node(1).freeze();
  const newcomer = environment.quorum({ leaseTime });
  const held: boolean[] = [];
  const wake = setTimeout(() => {
    environment.node(1).thaw();
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
