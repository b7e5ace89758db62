/**
 * Redlock. The numbers are those of a list of verified defects of lock libraries; what is tested is that ours does not
 * have them.
 *
 * 71  With one node silent, split votes wait for it, all processes let go and try again together, and none wins for
 *     seconds. Short leases hide it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import { Troupe } from '../quorum/troupe.js';
import { soon } from './stage.js';

let troupe: Troupe;

afterEach(async () => {
  for (const node of troupe.nodes) node.thaw();
  await troupe.end();
});

it('hands a lock over while one of three nodes is silent (pitfall 71)', async () => {
  troupe = await Troupe.of(3);
  const services = [troupe.quorum(), troupe.quorum(), troupe.quorum()];
  await Promise.all(services.map((service) => troupe.settled(service)));
  troupe.node(0).freeze();
  let served = 0;
  const turns = services.map(async (service) => {
    for (let n = 0; n < 15; n++) {
      await service.using('a', () => sleep(2));
      served++;
      await sleep(2);
    }
  });
  await soon(Promise.all(turns));
  expect(served).toBe(45);
});
