/** What holds on every store: written once, and run on Redis and on a memory store that two services share. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Lease,
  LockAbortedError,
  LockConfigError,
  LockKindMismatchError,
  type LockModuleOptions,
  LockTimeoutError,
  type LockService,
  MemoryLockStore,
} from '../../lib/index.js';
import { soon } from '../pitfalls/stage.js';
import { RedisServer } from '../support/redis-server.js';
import { FAIR, type Kind, lockOf, PLAIN, queued, queueLength, READ, semaphore, WRITE } from './kinds.js';
import { servicesOfEach } from '../support/services.js';

type Place = Pick<LockModuleOptions, 'connection' | 'store'>;

function rules(title: string, open: () => Promise<{ place: Place; close(): Promise<void> }>): void {
  describe(`The queue kinds on ${title}`, () => {
    let place: Place;
    let close: () => Promise<void>;
    let a: LockService;
    let b: LockService;
    let name: string;
    let count = 0;
    const { open: service } = servicesOfEach(() => place);

    beforeAll(async () => {
      ({ place, close } = await open());
    });
    beforeEach(() => {
      name = `rule:${String(count++)}`;
      a = service();
      b = service();
    });
    afterAll(() => close());

    /** Stands in the queue one after another, and logs the order of the grants. */
    async function line(log: string[], ...waiters: [label: string, by: LockService, kind: Kind][]) {
      const leases: Promise<Lease>[] = [];
      const before = await queueLength(a, name);
      for (const [label, by, kind] of waiters) {
        const waiting = lockOf(by, name, kind).acquire();
        leases.push(waiting);
        // A test that fails leaves some of them waiting, and its own error is the one to see.
        waiting.then(
          () => log.push(label),
          () => undefined,
        );
        await queued(a, name, before + leases.length);
      }
      return leases;
    }

    describe('order', () => {
      it.each([0, 1_200])(
        'plain: callers of one process leave the lock to a process that waits behind them, after a wait of %d ms',
        async (wait) => {
          const c = service();
          const holder = await a.getLock(name).acquire();
          const log: string[] = [];
          const hold = async (label: string, by: LockService) => {
            const lease = await by.getLock(name).acquire();
            log.push(label);
            await sleep(20);
            await lease.release();
          };
          const first = Array.from({ length: 6 }, () => hold('b', b));
          await queued(a, name, 1);
          const second = hold('c', c);
          await queued(a, name, 2);
          await sleep(wait);
          await holder.release();
          await Promise.all([...first, second]);
          expect(log).toEqual(['b', 'c', 'b', 'b', 'b', 'b', 'b']);
        },
      );
    });

    describe('readers and writers', () => {
      it('a writer may read, keeps reading after it, and so lets waiting readers in (pitfall 28)', async () => {
        const log: string[] = [];
        let waiting: Promise<Lease>[] = [];
        await a.runInScope(async () => {
          const write = await lockOf(a, name, WRITE).acquire();
          waiting = await line(log, ['r1', b, READ], ['w', b, WRITE], ['r2', b, READ]);
          const read = await lockOf(a, name, READ).acquire({ waitTime: 0 });
          expect(read.fencingToken).toBeGreaterThan(write.fencingToken);
          await write.release();
          await soon(waiting[0]!);
          expect(read.held).toBe(true);
          expect(log).toEqual(['r1']);
          await (await waiting[0]!).release();
          await read.release();
        });
        await (await waiting[1]!).release();
        await (await waiting[2]!).release();
      });

      it('a reader cannot write: it is refused at once, and nothing is left behind', async () => {
        await lockOf(a, name, READ).using(async (lease) => {
          await expect(soon(lockOf(a, name, WRITE).acquire())).rejects.toBeInstanceOf(LockConfigError);
          expect(lease.held).toBe(true);
          expect(await queueLength(a, name)).toBe(0);
        });
        await (await lockOf(a, name, WRITE).acquire({ waitTime: 0 })).release();
      });

      it('re-entry adds no lease time, and a shorter one takes none away (pitfall 19)', async () => {
        const lock = lockOf(a, name, READ);
        await lock.using({ leaseTime: 20_000 }, async () => {
          await (await lock.acquire({ leaseTime: 20_000 })).release();
          expect(await lock.remainingTime()).toBeLessThanOrEqual(20_100);
          await (await lock.acquire({ leaseTime: 1_000 })).release();
          expect(await lock.remainingTime()).toBeGreaterThan(10_000);
        });
      });

      it('read leases under a write lease do not touch it, nested ones included (pitfall 27)', async () => {
        const write = lockOf(a, name, WRITE);
        const read = lockOf(a, name, READ);
        await write.using({ leaseTime: 30_000 }, async (lease) => {
          const outer = await read.acquire({ leaseTime: 1_000 });
          await (await read.acquire({ leaseTime: 500 })).release();
          expect(lease.remainingTime()).toBeGreaterThan(20_000);
          await outer.release();
          expect(lease.remainingTime()).toBeGreaterThan(20_000);
          expect(await write.remainingTime()).toBeGreaterThan(20_000);
          expect(await lockOf(b, name, READ).tryAcquire()).toBeNull();
        });
      });
    });

    describe('one kind per name', () => {
      const kinds: [string, Kind][] = [
        ['plain', PLAIN],
        ['fair', FAIR],
        ['write', WRITE],
        ['read', READ],
        ['semaphore', semaphore(3)],
      ];
      const titleOf = ({ kind, permits }: Kind) => {
        if (kind === 'semaphore') return `semaphore with ${String(permits)} permits`;
        return `${kind === 'read' || kind === 'write' ? 'read-write' : (kind ?? 'plain')} lock`;
      };
      const pairs = kinds.flatMap(([held, holds]) =>
        kinds
          .filter(([wanted]) => wanted !== held && !(/read|write/.test(held) && /read|write/.test(wanted)))
          .map(([wanted, wants]) => [held, wanted, holds, wants] as const),
      );

      it.each(pairs)('held as %s, wanted as %s: refused', async (_held, _wanted, holds, wants) => {
        const holder = await lockOf(a, name, holds).acquire();
        const [expected, found] = [wants, holds].map(titleOf);
        for (const waitTime of [0, 5_000]) {
          const error: unknown = await lockOf(b, name, wants)
            .acquire({ waitTime })
            .catch((reason: unknown) => reason);
          expect(error).toBeInstanceOf(LockKindMismatchError);
          expect((error as Error).message).toContain(`cannot be used as a ${String(expected)}:`);
          expect((error as Error).message).toContain(`holds a ${String(found)} under`);
        }
        expect(holder.held).toBe(true);
        expect((await a.inspect(name))?.holders).toMatchObject([{ owner: holder.owner }]);
        await holder.release();
        await (await lockOf(b, name, wants).acquire({ waitTime: 0 })).release();
      });
    });

    describe('giving up', () => {
      it.each([
        ['fair', FAIR],
        ['write', WRITE],
        ['semaphore', semaphore(1)],
      ])('%s: abort, timeout and a mere try leave no entry behind', async (_, kind) => {
        const lock = lockOf(b, name, kind);
        const holder = await lockOf(a, name, kind).acquire();
        const abortion = new AbortController();
        const aborted = lock.acquire({ signal: abortion.signal });
        aborted.catch(() => undefined);
        await queued(a, name, 1);
        const timedOut = lock.acquire({ waitTime: 50 });
        timedOut.catch(() => undefined);
        await expect(lock.acquire({ waitTime: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
        await expect(timedOut).rejects.toBeInstanceOf(LockTimeoutError);
        abortion.abort();
        await expect(aborted).rejects.toBeInstanceOf(LockAbortedError);
        await queued(a, name, 0);
        await holder.release();
        expect(await a.inspect(name)).toBeNull();
      });

      it('an abort before, while and after the store is asked', async () => {
        const holder = await a.getFairLock(name).acquire();
        await expect(b.getFairLock(name).acquire({ signal: AbortSignal.abort() })).rejects.toBeInstanceOf(
          LockAbortedError,
        );
        for (let turns = 0; turns < 12; turns++) {
          const abortion = new AbortController();
          const waiting = b.getFairLock(name).acquire({ signal: abortion.signal });
          waiting.catch(() => undefined);
          for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
          abortion.abort();
          await expect(waiting).rejects.toBeInstanceOf(LockAbortedError);
        }
        await queued(a, name, 0);
        await holder.release();
        expect(await a.inspect(name)).toBeNull();
      });

      it('a writer that leaves lets in the readers that it held up', async () => {
        const reader = await lockOf(a, name, READ).acquire();
        const abortion = new AbortController();
        const writer = lockOf(a, name, WRITE).acquire({ signal: abortion.signal });
        writer.catch(() => undefined);
        await queued(a, name, 1);
        const [second] = await line([], ['r', b, READ]);
        abortion.abort();
        const lease = await soon(second!);
        expect(reader.held).toBe(true);
        await Promise.all([lease.release(), reader.release()]);
      });
    });
  });
}

rules('Redis', async () => {
  const server = await RedisServer.start();
  return { place: { connection: server.url }, close: () => server.stop() };
});

rules('memory', async () => ({ place: { store: new MemoryLockStore() }, close: async () => undefined }));
