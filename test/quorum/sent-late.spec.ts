import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError } from '../../lib/index.js';
import * as scripts from '../../lib/stores/redis/script.js';
import { until } from '../scenarios/until.js';
import { areTakenBack } from '../support/taken-back.js';
import { Troupe } from './troupe.js';

const LEASE = 3_000;

let troupe: Troupe;

afterEach(() => troupe.end());

it("an acquisition that the application's clients send again to all nodes, when its lease would be over, is taken back", async () => {
  troupe = await Troupe.of(3);
  const proxies = await troupe.proxies();
  const clients = proxies.map(({ url }) => {
    const client = new Redis(url, { maxRetriesPerRequest: null });
    client.on('error', () => undefined);
    troupe.add(() => {
      client.disconnect();
    });
    return client;
  });
  const locks = troupe.quorum({ leaseTime: LEASE }, clients);
  await troupe.settled(locks);
  for (const node of troupe.nodes) {
    for (const { source } of Object.values(scripts)) await node.client().script('LOAD', source);
  }
  for (const proxy of proxies) proxy.dropRequests(true);
  const refused = expect(locks.tryAcquire('a')).rejects.toBeInstanceOf(LockUnavailableError);
  await sleep(20);
  for (const proxy of proxies) {
    proxy.refuse(true);
    proxy.cut();
    proxy.dropRequests(false);
  }
  await refused;
  await sleep(2 * LEASE);
  const monitors = await Promise.all(troupe.nodes.map((node) => node.monitor()));
  for (const proxy of proxies) proxy.refuse(false);
  await until(() => monitors.every(areTakenBack));
  await Promise.all(monitors.map((monitor) => monitor.stop()));
  await troupe.isFreeEverywhere('a');
});
