/**
 * The module. The number is that of a list of verified defects of other lock libraries; what is tested is that ours
 * does not have it.
 *
 * 38  One lock object is cached per distinct key for ever; arrays of statistics grow without bound.
 *
 * On both versions of Nest, in test/nest/shutdown-order.spec.ts and request-scope.spec.ts:
 * 78  The lock module is imported after the module whose workers drain at the end: its shutdown takes the lock from a running job.
 * 87  A request-scoped dependency makes a service and a connection per request; a lazily loaded module never hears of shutdown.
 */
import { LastEntries } from '../../../lib/client/last-entries.js';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { Stage, until } from '../stage.js';

const stage = Stage.set();

/** How many objects and values hang from this one, through properties, maps and sets. */
function sizeOf(root: object): number {
  const seen = new Set<unknown>([root]);
  for (const found of seen) {
    if (typeof found !== 'object' || found === null) continue;
    // It has a bound of its own.
    if (found instanceof LastEntries) continue;
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(found))) seen.add(value);
    if (found instanceof Map) for (const entry of found) entry.forEach((part) => seen.add(part));
    if (found instanceof Set) found.forEach((member) => seen.add(member));
  }
  return seen.size;
}

const WAYS = ['released', 'ended by themselves'];

it.each(WAYS)('keeps nothing of 10,000 names whose locks were %s (pitfall 38)', async (way) => {
  const locks = stage.service();
  await locks.using('first', () => undefined);
  const before = sizeOf(locks);
  for (let batch = 0; batch < 100; batch++) {
    const names = Array.from({ length: 100 }, (_, n) => `a${String(batch)}-${String(n)}`);
    if (way === 'released') await Promise.all(names.map((name) => locks.using(name, () => undefined)));
    else await Promise.all(names.map((name) => locks.acquire(name, { leaseTime: 1_000 })));
  }
  await until(() => locks.leases().length === 0);
  expect(sizeOf(locks) - before).toBeLessThan(1_000);
});

it('keeps nothing of 1,000 names with waiters (pitfall 38)', async () => {
  const [holder, waiters] = [stage.service(), stage.service()];
  const waitForAll = async (names: string[]) => {
    const leases = await Promise.all(names.map((name) => holder.acquire(name)));
    const waiting = Promise.all(
      names.map((name) => waiters.using(name, { waitTime: 120_000 }, () => undefined)),
    );
    for (const name of names) await until(async () => (await stage.waiting(name)) === 1);
    await Promise.all(leases.map((lease) => lease.release()));
    await waiting;
    await until(async () => (await stage.redis.pubsub('CHANNELS', 'redisson_lock__channel:*')).length === 0);
  };
  await waitForAll(['first']);
  const before = sizeOf(waiters);
  await waitForAll(Array.from({ length: 1_000 }, (_, n) => `a${String(n)}`));
  expect(sizeOf(waiters) - before).toBeLessThan(500);
});

it.each(WAYS)('has a heap that stays as it is, in the built package too: %s (pitfall 38)', async (way) => {
  const program = fileURLToPath(new URL('../heap-probe.mjs', import.meta.url));
  const probe = [program, stage.server.url, way === 'released' ? 'using' : 'acquire'];
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', ...probe]);
  const [first, , third] = JSON.parse(stdout) as [number, number, number];
  // 20,000 names lie between them: a map of nothing but these would be twice as large.
  expect(third - first).toBeLessThan(1_000_000);
});
