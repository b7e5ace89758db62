import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { LockModuleOptions, LockService } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import type { RedisCluster } from '../../../support/redis-cluster.js';
import { clusterOfAll } from '../../../support/test-servers.js';

const environment = TestEnvironment.ofEach();
const cluster = clusterOfAll();

const service = (options: LockModuleOptions = {}): LockService =>
  environment.service({ connection: { cluster: cluster.addresses }, ...options });

const namesOf = (tag: string) => Array.from({ length: 30 }, (_, n) => `${tag}:${String(n)}`);

const sum = async (
  count: (server: Awaited<ReturnType<RedisCluster['masters']>>[number]) => Promise<number>,
) => (await Promise.all((await cluster.masters()).map(count))).reduce((total, one) => total + one, 0);
const commands = () =>
  sum(async (server) => {
    const { evalsha = 0, eval: whole = 0 } = await server.commandCalls();
    return evalsha + whole;
  });
const reads = () =>
  sum(async (server) =>
    Number(/^total_reads_processed:(\d+)/m.exec(await server.client().info('stats'))?.[1]),
  );

/** What it costs to take all and give them back. */
async function cycle(locks: LockService, names: readonly string[]) {
  const [commandsBefore, readsBefore] = [await commands(), await reads()];
  const leases = await Promise.all(names.map((name) => locks.acquire(name)));
  expect(leases.every(({ held }) => held)).toBe(true);
  await Promise.all(leases.map((lease) => lease.release()));
  return { commands: (await commands()) - commandsBefore, reads: (await reads()) - readsBefore };
}

describe('What one turn asks of a cluster', () => {
  it('shares a command where it is for one slot', async () => {
    const locks = service();
    const names = namesOf('{tag}');
    await cycle(locks, names);
    // The first goes ahead, each time.
    expect((await cycle(locks, names)).commands).toBe(4);
  });

  it('shares a write where it is for one node', async () => {
    const locks = service();
    const names = namesOf('spread');
    await cycle(locks, names);
    const { commands, reads } = await cycle(locks, names);
    expect(commands).toBe(60);
    // Two for each node and turn, and what these questions cost themselves.
    expect(reads).toBeLessThan(30);
  });

  it('gets its answers, each of its own, while the slot moves and when it has moved', async () => {
    const locks = service();
    const names = namesOf('{moving}');
    await cycle(locks, names);
    const held = await Promise.all(names.slice(0, 10).map((name) => locks.acquire(name)));
    const slot = await cluster.slotOf('lock:{moving}:0');
    const from = await cluster.masterOf(slot);
    const to = (await cluster.masters()).find((master) => master !== from) ?? from;
    await cluster.beginMove(slot, to);
    // Some keys of each are at the one node, and some at none.
    const acquired = Promise.all(names.slice(10).map((name) => locks.acquire(name)));
    await sleep(100);
    await cluster.migrate(slot, from, to);
    await cluster.endMove(slot, to);
    const rest = await acquired;
    expect(rest.every((lease) => lease.held)).toBe(true);
    const other = service();
    expect(await Promise.all(names.map((name) => other.tryAcquire(name)))).toEqual(names.map(() => null));
    await Promise.all([...held, ...rest].map((lease) => lease.release()));
    expect(await Promise.all(names.map((name) => locks.getLock(name).isLocked()))).toEqual(
      names.map(() => false),
    );
  });
});
