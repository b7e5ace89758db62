import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { filter } from 'rxjs';
import { type LockEvent, type LockModuleOptions, type LockService } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { serverVersion } from '../../../support/redis-server.js';
import { fenceOf } from '../../../support/keys.js';
import { clusterOfAll } from '../../../support/test-servers.js';

/** ms: renewed every 2,000 ms, and commands have 1,000 ms. */
const LEASE = 6_000;
/** ms: longer than any call waits, so a caller that gets the lock was woken. */
const LONG = 300_000;

const environment = TestEnvironment.ofEach();
const cluster = clusterOfAll();
let names = 0;

const service = (options: LockModuleOptions = {}): LockService =>
  environment.service({ connection: { cluster: cluster.addresses }, leaseTime: LONG, ...options });

/** Takes longer than a lease, so all at once. */
const each = (run: (kind: Kind) => Promise<void>): Promise<unknown> => Promise.all(KINDS.map(run));

/** A name, its slot, where that is, and another master. */
async function place() {
  const name = `moving:${String(++names)}`;
  const slot = await cluster.slotOf(`lock:${name}`);
  const from = await cluster.masterOf(slot);
  const to = (await cluster.masters()).find((master) => master !== from) ?? from;
  return { name, slot, from, to, keys: [`lock:${name}`, fenceOf(`lock:${name}`)] };
}

type Kind = 'lock' | 'fair' | 'read' | 'write' | 'semaphore';
const KINDS: Kind[] = ['lock', 'fair', 'read', 'write', 'semaphore'];

function lockOf(locks: LockService, name: string, kind: Kind) {
  if (kind === 'lock') return locks.getLock(name);
  if (kind === 'fair') return locks.getFairLock(name);
  if (kind === 'semaphore') return locks.getSemaphore(name, 1);
  return locks.getReadWriteLock(name)[kind];
}

describe('A slot that goes to another master', () => {
  it('while a lock is held, of any kind: it stays held, renewed and excluding there', async () => {
    const [a, b] = [service({ leaseTime: LEASE }), service()];
    await each(async (kind) => {
      const { name, slot, to } = await place();
      const lease = await lockOf(a, name, kind).acquire();
      await cluster.moveSlot(slot, to);
      await sleep(LEASE + 1_000);
      expect(lease.signal.reason).toBeUndefined();
      expect((await b.inspect(name))?.holders).toMatchObject([{ owner: lease.owner }]);
      expect(await lockOf(b, name, kind === 'read' ? 'write' : kind).tryAcquire()).toBeNull();
      await lease.release();
      const next = await lockOf(b, name, kind).acquire({ waitTime: 0 });
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      await next.release();
    });
  });

  it.each(KINDS)('while a %s lock is waited for: the waiter is woken, and has it alone', async (kind) => {
    const { name, slot, to } = await place();
    const [a, b] = [service(), service()];
    const lease = await lockOf(a, name, kind === 'read' ? 'write' : kind).acquire();
    const waiting = lockOf(b, name, kind).acquire();
    await until(async () => waits(await a.inspect(name)));
    await cluster.moveSlot(slot, to);
    await sleep(100);
    await lease.release();
    const next = await waiting;
    expect((await a.inspect(name))?.holders).toMatchObject([{ owner: next.owner }]);
    await next.release();
  });

  it('many times, while many want its lock: one at a time has it, and the tokens grow', async () => {
    const { name, slot } = await place();
    const services = [service(), service(), service()];
    let inside = 0;
    let last = 0;
    let done = false;
    const runs = services.flatMap((locks) =>
      Array.from({ length: 4 }, async () => {
        for (let n = 0; !done; n++) {
          const lease = await locks.acquire(name, { waitTime: 60_000 });
          expect(++inside).toBe(1);
          expect(lease.fencingToken).toBeGreaterThan(last);
          last = lease.fencingToken;
          await sleep(2);
          inside--;
          await lease.release();
        }
      }),
    );
    const masters = await cluster.masters();
    for (let n = 0; n < 6; n++) {
      await sleep(150);
      const from = await cluster.masterOf(slot);
      const to = masters[(masters.indexOf(from) + 1) % masters.length];
      await cluster.moveSlot(slot, to ?? from);
    }
    done = true;
    await Promise.all(runs);
  });
});

it('Slots that have moved are found by the calls of one moment, whichever commands the client sends together', async () => {
  const client = environment.client(new Cluster(cluster.addresses, { enableAutoPipelining: true }));
  const locks = service({ connection: client });
  const all = await Promise.all(Array.from({ length: 36 }, place));
  const places = all.filter(({ from }) => from === all[0]?.from);
  for (const { name } of places) await (await locks.acquire(name)).release();
  // The next look at the slots comes too late.
  client.refreshSlotsCache = () => undefined;
  for (const { slot, to } of places) await cluster.moveSlot(slot, to);
  const leases = await Promise.all(places.map(({ name }) => locks.acquire(name, { waitTime: 0 })));
  await Promise.all(leases.map((lease) => lease.release()));
});

describe('A master that is new and has no slot yet', () => {
  it('is given the slot of a lock that is held and waited for: all goes on', async () => {
    const { name, slot } = await place();
    const [a, b] = [service({ leaseTime: LEASE }), service()];
    const lease = await a.acquire(name);
    const waiting = b.acquire(name);
    await until(async () => waits(await a.inspect(name)));
    const added = await cluster.addMaster();
    const from = await cluster.beginMove(slot, added);
    await cluster.migrate(slot, from, added);
    await sleep(LEASE + 1_000); // renewed by a node that the slots do not name
    expect(lease.held).toBe(true);
    await cluster.endMove(slot, added);
    await lease.release();
    await (await waiting).release();
  });
});

const movesAtOnce = /^Valkey server v=(?:9|\d{2,})\./.test(serverVersion());
const skipped = movesAtOnce ? '' : ' (skipped: only Valkey does that, from 9.0 on)';

(movesAtOnce ? it : it.skip)(
  `A slot that the servers move in one step: held locks stay held, waiters are woken${skipped}`,
  async () => {
    const [a, b] = [service({ leaseTime: LEASE }), service()];
    await each(async (kind) => {
      const { name, slot, to } = await place();
      const lease = await lockOf(a, name, kind).acquire();
      const other = kind === 'read' ? 'write' : kind;
      const waiting = lockOf(b, name, other).acquire({ waitTime: 60_000 });
      await until(async () => (await b.inspect(name))?.waiters.local === 1);
      await cluster.moveAtOnce(slot, to);
      await sleep(LEASE + 1_000);
      expect(lease.signal.reason).toBeUndefined();
      await lease.release();
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      await next.release();
    });
  },
);

describe('While a slot is on its way', () => {
  it('a held lock of any kind is renewed, where it is and where it goes', async () => {
    const locks = service({ leaseTime: LEASE });
    await each(async (kind) => {
      const { name, slot, to, keys } = await place();
      const lease = await lockOf(locks, name, kind).acquire();
      const from = await cluster.beginMove(slot, to);
      await sleep(LEASE);
      expect(lease.signal.reason).toBeUndefined();
      await cluster.migrate(slot, from, to, keys.slice(0, 1));
      await sleep(LEASE); // the fence has stayed behind
      expect(lease.signal.reason).toBeUndefined();
      await cluster.migrate(slot, from, to, keys.slice(1));
      await sleep(LEASE);
      expect(lease.signal.reason).toBeUndefined();
      const answer = await to.client().exists(keys).catch(String);
      expect(answer).toContain('MOVED'); // still on its way
      await cluster.endMove(slot, to);
      await sleep(LEASE);
      expect(lease.signal.reason).toBeUndefined();
      await lease.release();
    });
  });

  it('a lock that is split between two nodes is kept and extended as soon as it is whole again', async () => {
    const { name, slot, to, keys } = await place();
    const locks = service();
    const lease = await locks.acquire(name);
    const from = await cluster.beginMove(slot, to);
    await cluster.migrate(slot, from, to, keys.slice(0, 1));
    const extending = lease.extend(2 * LONG);
    await sleep(300);
    await cluster.migrate(slot, from, to, keys.slice(1));
    await extending;
    expect(lease.remainingTime()).toBeGreaterThan(LONG);
    await cluster.endMove(slot, to);
    await lease.release();
  });

  it('a lock of any kind that is handed over is held by one at a time', async () => {
    // A message may be lost on the way: then the waiter looks when the lease has ended.
    const [a, b, c] = [1, 2, 3].map(() => service({ leaseTime: 30_000 })) as [
      LockService,
      LockService,
      LockService,
    ];
    await each(async (kind) => {
      const { name, slot, to } = await place();
      const lease = await lockOf(a, name, kind).acquire();
      const waiting = lockOf(b, name, kind === 'read' ? 'write' : kind).acquire({ waitTime: 60_000 });
      await until(async () => waits(await a.inspect(name)));
      // The key goes with its last holder, and none is made anew here.
      const from = await cluster.beginMove(slot, to);
      await lease.release();
      await sleep(100);
      await cluster.migrate(slot, from, to);
      await cluster.endMove(slot, to);
      const other = await lockOf(c, name, kind === 'read' ? 'write' : kind).tryAcquire({ waitTime: 2_000 });
      await other?.release();
      const next = await waiting;
      if (other !== null) expect(next.fencingToken).toBeGreaterThan(other.fencingToken);
      expect((await a.inspect(name))?.holders).toMatchObject([{ owner: next.owner }]);
      await next.release();
    });
  });

  it('a lock of any kind with several waiters changes hands', async () => {
    const [a, b, c] = [service(), service(), service()];
    const failures = failuresOf(a);
    await each(async (kind) => {
      const { name, slot, to } = await place();
      const exclusive = kind === 'read' ? 'write' : kind;
      const lease = await lockOf(a, name, exclusive).acquire();
      const first = lockOf(b, name, kind).acquire();
      await until(async () => waiting(await a.inspect(name)) === 1);
      const second = lockOf(c, name, exclusive).acquire();
      await until(async () => waiting(await a.inspect(name)) === 2);
      const from = await cluster.beginMove(slot, to);
      await lease.release();
      const next = await first;
      expect((await a.inspect(name))?.holders).toMatchObject([{ owner: next.owner }]);
      await cluster.migrate(slot, from, to);
      await cluster.endMove(slot, to);
      await next.release();
      await (await second).release();
    });
    expect(failures).toEqual([]);
  });
});

function failuresOf(locks: LockService): LockEvent[] {
  const failures: LockEvent[] = [];
  locks.events$
    .pipe(filter(({ type }) => type === 'release-failed'))
    .subscribe((event) => failures.push(event));
  return failures;
}

type State = Awaited<ReturnType<LockService['inspect']>>;

const waiting = (state: State): number => Math.max(state?.waiters.processes ?? 0, state?.queue.length ?? 0);

const waits = (state: State): boolean => waiting(state) > 0;
