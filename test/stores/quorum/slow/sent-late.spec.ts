import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError } from '../../../../lib/index.js';
import * as scripts from '../../../support/scripts.js';
import { until } from '../../../scenarios/until.js';
import { areTakenBack } from '../../../support/taken-back.js';
import { QuorumEnvironment } from '../quorum-environment.js';

const LEASE = 3_000;

let environment: QuorumEnvironment;

afterEach(() => environment.end());

it("an acquisition that the application's clients send again to all nodes, when its lease would be over, is taken back", async () => {
  environment = await QuorumEnvironment.of(3);
  const proxies = await environment.proxies();
  const clients = proxies.map(({ url }) => {
    const client = new Redis(url, { maxRetriesPerRequest: null });
    client.on('error', () => undefined);
    environment.add(() => {
      client.disconnect();
    });
    return client;
  });
  const locks = environment.quorum({ leaseTime: LEASE }, clients);
  await environment.settled(locks);
  for (const node of environment.nodes) {
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
  await sleep(LEASE + 500);
  const monitors = await Promise.all(environment.nodes.map((node) => node.monitor()));
  for (const proxy of proxies) proxy.refuse(false);
  await until(() => monitors.every(areTakenBack));
  await Promise.all(monitors.map((monitor) => monitor.stop()));
  await environment.isFreeEverywhere('a');
});
