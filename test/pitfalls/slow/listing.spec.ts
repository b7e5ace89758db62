/**
 * Lists of locks that are read in pages. The number is that of a list of verified defects of lock libraries; what is tested is
 * that ours does not have it.
 *
 * 89  A SCAN cursor is used on another run of the server, or another node: locks are left out without a word.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { isLockUnavailableError, type LockService } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { SentinelDeployment } from '../../support/sentinel.js';
import { TestEnvironment } from '../../support/test-environment.js';

const environment = TestEnvironment.ofEach();

/** More than SCAN reads in one step. */
const MANY = Array.from({ length: 3_000 }, (_, n) => `order:${String(n)}`);
const LASTING = { args: ['--appendonly', 'yes', '--appendfsync', 'always'] };
const DAY = 86_400_000;

const OWNER = `${randomUUID()}:1`;

/** As another process would have taken them. */
async function hold(redis: Redis, names: readonly string[]): Promise<void> {
  const pipeline = redis.pipeline();
  for (const name of names) pipeline.hset(`lock:${name}`, OWNER, 1).pexpire(`lock:${name}`, DAY);
  for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error;
}

/** The names of all pages, in their order. */
async function listed(
  locks: LockService,
  limit: number,
  afterPage: (page: number, names: readonly string[]) => Promise<void>,
  /** Before the page is asked for again. */
  onError: (error: unknown) => Promise<undefined> = async (error) => {
    throw error;
  },
): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | undefined;
  for (let number = 1; ; number++) {
    const page = await locks.list({ limit, cursor }).catch(onError);
    if (page === undefined) continue;
    found.push(...page.locks.map(({ name }) => name));
    if (page.cursor === null) return found;
    ({ cursor } = page);
    await afterPage(number, found);
  }
}

const unique = (names: readonly string[]) => [...new Set(names)].sort();

describe('A list that goes on where another run of the server begins (pitfall 89)', () => {
  it('has all locks after a failover of Sentinel', async () => {
    const sentinel = await SentinelDeployment.start();
    try {
      const master = await sentinel.master();
      await hold(master.client(), MANY);
      expect(await master.client().wait(2, 10_000)).toBe(2);
      const locks = environment.service({ connection: sentinel.connection });
      const failOver = async (page: number) => {
        if (page === 1) await sentinel.failover(master);
      };
      const found = await listed(locks, 1_000, failOver, async (error) => {
        // Until it has found the new master.
        expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
        await until(async () => (await locks.health()).status === 'up');
        return undefined;
      });
      expect(unique(found)).toEqual(unique(MANY));
      await environment.end();
    } finally {
      await sentinel.stop();
    }
  });

  it('has all locks of a quorum, of which a node has restarted with its data', async () => {
    const nodes = await Promise.all([1, 2, 3].map(() => environment.server(LASTING)));
    await Promise.all(nodes.map((node) => hold(node.client(), MANY)));
    // A node has a twentieth of it for an answer.
    const locks = environment.service({ nodes: nodes.map(({ url }) => url), leaseTime: 5_000 });
    await until(async () => (await locks.health()).status === 'up');
    const found = await listed(locks, 1_000, async (page) => {
      if (page === 1) await restarted(nodes[0]!, locks);
    });
    expect(unique(found)).toEqual(unique(MANY));
  });
});

describe('A list of a cluster whose slots change hands meanwhile (pitfall 89)', () => {
  /** The name of a lock on the node that is read last; the first node has been read when its slot goes there. */
  async function lastLock(cluster: RedisCluster, names: readonly string[]) {
    const masters = (await cluster.masters()).sort((a, b) => Number(String(a.port) > String(b.port)) * 2 - 1);
    const [first, last] = [masters[0]!, masters.at(-1)!];
    for (const name of names) {
      const slot = await cluster.slotOf(`lock:${name}`);
      if ((await cluster.masterOf(slot)) === last) return { first, last, name, slot };
    }
    throw new Error('no lock on the last node');
  }

  const NAMES = Array.from({ length: 60 }, (_, n) => `order:${String(n)}`);

  type Change = (cluster: RedisCluster, at: Awaited<ReturnType<typeof lastLock>>) => Promise<void>;

  /**
   * @param change is done when the list has come to the last node
   * @param onUnavailable ends what has made the list unavailable
   */
  async function listedWhile(change: Change, onUnavailable?: Change): Promise<string[]> {
    const cluster = await RedisCluster.start();
    try {
      const locks = environment.service({ connection: { cluster: cluster.addresses } });
      await Promise.all(NAMES.map((name) => locks.acquire(name)));
      const at = await lastLock(cluster, NAMES);
      const lastNames = new Set<string>();
      for (const name of NAMES)
        if ((await cluster.masterOf(await cluster.slotOf(`lock:${name}`))) === at.last) lastNames.add(name);
      let isChanged = false;
      const found = await listed(
        locks,
        1,
        async (_, names) => {
          if (isChanged || names.length < NAMES.length - lastNames.size) return;
          isChanged = true;
          await change(cluster, at);
        },
        async (error) => {
          if (!isLockUnavailableError(error) || onUnavailable === undefined) throw error;
          await onUnavailable(cluster, at);
          return undefined;
        },
      );
      expect(isChanged).toBe(true);
      await environment.end();
      return unique(found);
    } finally {
      await cluster.stop();
    }
  }

  it('has all locks where a slot goes to a node that has been read', async () => {
    const found = await listedWhile(async (cluster, { slot, first }) => {
      await cluster.moveSlot(slot, first);
    });
    expect(found).toEqual(unique(NAMES));
  });

  it('has all locks where a replica takes over by hand', async () => {
    const found = await listedWhile(async (cluster, { last }) => {
      for (const server of cluster.servers) {
        const role = await server.client().role();
        if (role[0] !== 'slave' || role[2] !== last.port) continue;
        await cluster.promote(server);
      }
    });
    expect(found).toEqual(unique(NAMES));
  });
});

async function restarted(server: RedisServer, locks: LockService): Promise<void> {
  await server.restart();
  await until(async () => (await locks.health()).nodes.every(({ status }) => status === 'up'));
}
