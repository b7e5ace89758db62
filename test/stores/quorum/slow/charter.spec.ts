import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockModuleOptions, LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import { QuorumEnvironment } from '../quorum-environment.js';

/** ms */
const SHORT = 2_000;
const LONG = 15_000;

/** Holds a lock in some way, and tells whether it is still promised. */
type Way = (holder: LockService) => Promise<() => boolean>;

const ways: Record<string, Way> = {
  'a lease time of a call': async (holder) => {
    const lease = await holder.acquire('a', { leaseTime: LONG });
    return () => lease.held;
  },
  'a lease time of a call that is renewed': async (holder) => {
    const lease = await holder.acquire('a', { leaseTime: LONG, renew: true });
    return () => lease.held;
  },
  'an extension': async (holder) => {
    const lease = await holder.acquire('a');
    await lease.extend(LONG);
    return () => lease.held;
  },
  'a minHoldTime': async (holder) => {
    const since = performance.now();
    await holder.using('a', { minHoldTime: LONG }, () => undefined);
    return () => performance.now() - since < 0.9 * LONG;
  },
  'the lease of an election': async (holder) => {
    const election = holder.getElection('a', { leaseTime: LONG });
    const leading = new Promise<void>((resolve, reject) => {
      election
        .run(async ({ signal }) => {
          resolve();
          await new Promise((end) => {
            signal.addEventListener('abort', end);
          });
        })
        .catch(reject);
    });
    await leading;
    return () => election.isLeader();
  },
  'the lease of a multi-lock': async (holder) => {
    const lease = await holder.acquire(['a', 'b'], { leaseTime: LONG });
    return () => lease.held;
  },
  'an extension of a multi-lock': async (holder) => {
    const lease = await holder.acquire(['a', 'b']);
    await lease.extend(LONG);
    return () => lease.held;
  },
  'a nested lease': (holder) =>
    new Promise((resolve, reject) => {
      holder
        .using('a', async (outer) => {
          await holder.acquire('a', { leaseTime: LONG });
          resolve(() => outer.held);
          await until(() => !outer.held, 3 * LONG);
        })
        .catch(reject);
    }),
};

describe('A node that restarts (pitfall 79)', () => {
  const environment = QuorumEnvironment.forEach(3);
  let proxies: TcpProxy[];

  beforeEach(async () => {
    proxies = await environment.proxies();
  });

  const holding = (options: Partial<LockModuleOptions>) =>
    environment.quorum(
      options,
      proxies.map(({ url }) => url),
    );

  /** From now on only nodes 0 and 1 are there for the holder. */
  function cutOff(): void {
    proxies[2]?.refuse(true);
    proxies[2]?.cut();
  }

  /** Tries for two short leases, and for as long as the hold lasts at most. @returns whether both have had the lock */
  async function enters(rival: LockService, isHeld: () => boolean, name = 'a'): Promise<boolean> {
    const end = performance.now() + 2 * SHORT;
    while (isHeld() && performance.now() < end) {
      const got = await rival.tryAcquire(name).catch(() => null);
      // Looked at in the same turn.
      if (got !== null && isHeld()) return true;
      await sleep(10);
    }
    return false;
  }

  it.each(Object.entries(ways))('lets no second owner in beside %s', async (_, hold) => {
    const holder = holding({ leaseTime: SHORT, keyPrefix: 'lock:' });
    const rival = environment.quorum({ leaseTime: SHORT });
    await Promise.all([environment.settled(holder), environment.settled(rival)]);
    // All nodes learn of leases of this length before one of them is out of reach.
    const first = await holder.acquire('other', { leaseTime: LONG });
    await first.release();
    cutOff();
    const isHeld = await hold(holder);
    await environment.node(1).restart();
    expect(await enters(rival, isHeld)).toBe(false);
    expect(await enters(environment.quorum({ leaseTime: SHORT }), isHeld)).toBe(false);
  });

  it.each([
    ['first', true],
    ['last', false],
  ])(
    'lets no second owner in beside a service with a longer leaseTime, which came %s',
    async (_, isFirst) => {
      const rivalFirst = isFirst ? undefined : environment.quorum({ leaseTime: SHORT });
      if (rivalFirst !== undefined) await environment.settled(rivalFirst);
      const holder = holding({ leaseTime: LONG });
      await environment.settled(holder);
      await (await holder.acquire('other', { leaseTime: LONG })).release();
      const rival = rivalFirst ?? environment.quorum({ leaseTime: SHORT });
      await environment.settled(rival);
      cutOff();
      const lease = await holder.acquire('a');
      await environment.node(1).restart();
      expect(await enters(rival, () => lease.held)).toBe(false);
    },
  );

  it('lets no second owner in that divides the key differently between prefix and name', async () => {
    const holder = holding({ leaseTime: LONG, keyPrefix: 'x:' });
    await environment.settled(holder);
    cutOff();
    const lease = await holder.acquire('y:a');
    await environment.node(1).restart();
    const rival = environment.quorum({ leaseTime: LONG, keyPrefix: 'x:y:' });
    expect(await enters(rival, () => lease.held)).toBe(false);
  });
});

describe('A planned change of the set', () => {
  let environment: QuorumEnvironment;
  afterEach(() => environment.end());

  it('is made by deleting the charters while no service runs', async () => {
    environment = await QuorumEnvironment.of(5);
    const three = environment.quorum({ leaseTime: SHORT }, environment.urls.slice(0, 3));
    await environment.settled(three);
    const before = await three.acquire('a');
    await before.release();
    await three.close();
    await Promise.all(environment.nodes.map((node) => node.client().del('~ndl:quorum')));
    const five = environment.quorum({ leaseTime: SHORT });
    const lease = await five.acquire('a');
    expect(lease.fencingToken).toBeGreaterThan(before.fencingToken);
    await until(async () => (await five.health()).status === 'up');
  });
});

describe('Services with different sets of nodes', () => {
  const environment = QuorumEnvironment.forEach(5);

  it.each([
    ['3 and 5', [0, 1, 2], [0, 1, 2, 3, 4]],
    ['5 and 3', [0, 1, 2, 3, 4], [2, 3, 4]],
    ['one exchanged', [0, 1, 2], [0, 1, 3]],
    ['one in common', [0, 1, 2], [2, 3, 4]],
  ])('do not both get a lock: %s', async (_, mine, theirs) => {
    const urlsOf = (nodes: readonly number[]) => nodes.map((index) => environment.urls[index] ?? '');
    const holder = environment.quorum({ leaseTime: LONG }, urlsOf(mine));
    await environment.settled(holder);
    const held: unknown[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) held.push(await holder.acquire(name));
    const rival = environment.quorum({ leaseTime: LONG }, urlsOf(theirs));
    const refused = await rival.acquire('f', { waitTime: LONG }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'LOCK_CONFIG', option: 'nodes' });
    const message = (refused as Error).message;
    for (const { port } of environment.nodes) {
      const isOfOne = [...mine, ...theirs].some((index) => environment.nodes[index]?.port === port);
      if (isOfOne) expect(message).toContain(String(port));
    }
    const { status, nodes } = await rival.health();
    expect(status).toBe('down');
    expect(nodes.map(({ error }) => error).join()).toContain('charter');
    await until(async () => (await holder.health()).status === 'up');
  });

  it.each([
    ['goes on', false],
    ['begins anew', true],
  ])(
    'are one quorum if only the names differ, also if a node restarts and a service %s',
    async (_, isNew) => {
      const urls = (await environment.proxies()).map(({ url }) => url);
      const founder = environment.quorum({ leaseTime: SHORT });
      await environment.settled(founder);
      const other = environment.quorum({ leaseTime: SHORT }, urls);
      await environment.settled(other);
      const knowsNames = async () =>
        (await environment.node(1).client().hkeys('~ndl:quorum')).filter((field) =>
          field.startsWith('nodes '),
        ).length === 2;
      await until(knowsNames);
      await founder.close();
      if (isNew) await other.close();
      await environment.node(0).restart();
      const service = isNew ? environment.quorum({ leaseTime: SHORT }, urls) : other;
      const lease = await service.acquire('a');
      await lease.release();
      await environment.settled(service);
    },
  );
});
