import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { RedisServer } from '../../../support/redis-server.js';
import { Worker } from '../../../support/worker.js';

const CHANNEL = 'redisson_lock__channel:{lock:a}';
/** ms: longer than any caller waits, so a caller that gets the lock was woken. */
const LONG = 300_000;
const PATIENT = { waitTime: 60_000 };
/** So many that the lock is left to them with nearly every release. */
const OUTSIDERS = 40;

let server: RedisServer;
let services: LockService[];
let outsiders: Redis[];
let workers: Worker[];

const open = (): LockService => {
  const service = new LockService({ connection: server.url, leaseTime: LONG });
  services.push(service);
  return service;
};

const waiting = async (count: number) => {
  const [key = ''] = await server.client().keys('*ndl:queue*');
  return key !== '' && (await server.client().zcard(key)) === count;
};

/** They listen as clients of Redisson do, and want nothing. */
const listen = async () => {
  outsiders = Array.from({ length: OUTSIDERS }, () => server.client().duplicate());
  await Promise.all(outsiders.map((outsider) => outsider.subscribe(CHANNEL)));
};

beforeEach(async () => {
  server = await RedisServer.start();
  [services, outsiders, workers] = [[], [], []];
});

afterEach(async () => {
  for (const outsider of outsiders) outsider.disconnect();
  await Promise.all(workers.map((worker) => worker.kill()));
  await Promise.all(services.map((service) => service.onApplicationShutdown()));
  await server.stop();
});

it('a dead process at the head costs nothing where the lock is left to them', async () => {
  const [holder, waiter] = [open(), open()];
  const lease = await holder.acquire('a');
  const waits = waiter.acquire('a', PATIENT);
  await until(() => waiting(1));
  const [queue = ''] = await server.client().keys('*ndl:queue*');
  await server.client().zadd(queue, 1, 'p 8d5d0bb5-4bb0-4f4b-a1f6-d3f8f0f1b6a1:1 30000');
  await listen();
  // Its first look, by which it learns how long the hold lasts, is over.
  await sleep(1_500);
  await lease.release();
  // Else the lock is free until the end of the lease that the waiter has been told of.
  expect((await waits).held).toBe(true);
});

it('a frozen process at the head keeps it from the others as long as a claim', async () => {
  const [holder, waiter] = [open(), open()];
  const lease = await holder.acquire('a');
  const frozen = await Worker.start({ url: server.url, service: { leaseTime: LONG } });
  workers.push(frozen);
  frozen.call('acquire', 'a', { waitTime: Infinity }).catch(() => undefined);
  await until(() => waiting(1));
  const waits = waiter.acquire('a', PATIENT);
  await until(() => waiting(2));
  frozen.freeze();
  await listen();
  // From then on it would be granted a claim only.
  await sleep(1_200);
  await lease.release();
  expect((await waits).held).toBe(true);
});
