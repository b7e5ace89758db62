import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentLease, DistributedLock, LockModule } from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { DecoratedApp } from './decorated-app.js';

let nest: DecoratedApp;

beforeEach(() => {
  nest = new DecoratedApp();
});

afterEach(() => nest.close());

describe('minHoldTime', () => {
  it('keeps the lock for minHoldTime from its start, and no longer', async () => {
    const jobs = await nest.servedWith({ minHoldTime: 2_000, waitTime: 0, onBusy: 'skip' });
    const began = performance.now();
    expect(await jobs.run()).toBe('done');
    expect(nest.locks.leases()).toEqual([]);
    expect(await jobs.run()).toBeUndefined();
    const lease = await nest.locks.acquire('job', { waitTime: 10_000 });
    expect(performance.now() - began).toBeGreaterThanOrEqual(1_999);
    await lease.release();
  });

  it('adds nothing to a method that takes longer', async () => {
    const jobs = await nest.servedWith({ minHoldTime: 10 }, () => sleep(30));
    await jobs.run();
    expect(await nest.locks.inspect('job')).toBeNull();
  });

  it('counts for a method that fails, too', async () => {
    const jobs = await nest.servedWith({ minHoldTime: 1_000 }, () => Promise.reject(new Error('x')));
    await jobs.run().catch(() => undefined);
    expect((await nest.locks.inspect('job'))?.remainingTime).toBeLessThanOrEqual(1_000);
  });

  it('goes with a fixed lease as long, and with a renewed one of any length', async () => {
    for (const options of [
      { leaseTime: 500, minHoldTime: 500 },
      { leaseTime: 500, renew: true, minHoldTime: 5_000 },
    ]) {
      const jobs = await nest.servedWith(options);
      await expect(jobs.run()).resolves.toBe('done');
      await nest.close();
    }
  });

  it('does not lengthen the lease meanwhile, so a crash frees the lock no later', async () => {
    const jobs = await nest.servedWith({ minHoldTime: 600_000 }, () =>
      nest.locks.getLock('job').remainingTime(),
    );
    expect(await jobs.run()).toBeLessThanOrEqual(30_000);
  });
});

describe('other options', () => {
  it('instance names the service', async () => {
    const other = new ScriptedStore();
    @Injectable()
    class Jobs {
      @DistributedLock('job', { instance: 'reports' })
      async run(): Promise<void> {
        await sleep(1);
      }
    }
    nest.module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ store: nest.store }),
        LockModule.forRoot({ store: other, name: 'reports' }),
      ],
      providers: [Jobs],
    }).compile();
    await nest.module.get(Jobs).run();
    expect([nest.store.calls.acquire, other.calls.acquire]).toEqual([0, 1]);
  });

  it('an unknown instance fails the boot with its cure', async () => {
    @Injectable()
    class Jobs {
      @DistributedLock('job', { instance: 'nowhere' })
      async run(): Promise<void> {
        await sleep(1);
      }
    }
    await expect(nest.boot(Jobs)).rejects.toThrow(/Jobs.*name: "nowhere"/s);
  });

  it('signal stops the waiting, leaseTime fixes the lease', async () => {
    const controller = new AbortController();
    const jobs = await nest.servedWith({ signal: controller.signal, leaseTime: 1_000 }, () =>
      Promise.resolve(currentLease()?.remainingTime()),
    );
    expect(await jobs.run()).toBeLessThan(1_000);
    await nest.locks.acquire('job');
    const waiting = jobs.run();
    await sleep(5);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  });
});

describe('kind', () => {
  @Injectable()
  class Files {
    @DistributedLock('file:$<args[0]>', { kind: 'read' })
    async read(name: string): Promise<string> {
      return nest.entries.visit(name, 'read', 20);
    }
    @DistributedLock('file:$<args[0]>', { kind: 'write' })
    async write(name: string): Promise<string> {
      nest.entries.enter('write');
      // A writer may read what it writes.
      const content = await this.read(name);
      nest.entries.leave('write');
      return content;
    }
    @DistributedLock('queue', { kind: 'fair' })
    async fair(order: number[], n: number): Promise<void> {
      order.push(n);
      await sleep(1);
    }
    @DistributedLock(['a', 'b'], { kind: 'fair' })
    async both(): Promise<string[]> {
      return Promise.resolve(nest.locks.leases().map((lease) => lease.name));
    }
  }

  it("'read' shares, 'write' does not", async () => {
    const files = await nest.make(Files);
    await Promise.all([files.read('x'), files.read('x'), files.read('x')]);
    expect(nest.entries.most).toBe(3);
    nest.entries = new Entries();
    await Promise.all([files.write('x'), files.write('x'), files.write('y')]);
    expect(nest.entries.most).toBeLessThanOrEqual(2);
    expect(await nest.locks.inspect('file:x')).toBeNull();
  });

  it("'fair' serves in the order of arrival, and takes several keys", async () => {
    const files = await nest.make(Files);
    const order: number[] = [];
    await Promise.all(Array.from({ length: 10 }, (_, n) => files.fair(order, n)));
    expect(order).toEqual(Array.from({ length: 10 }, (_, n) => n));
    expect(await files.both()).toEqual(['a', 'b']);
  });
});
