import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  isLockTimeoutError,
  type Lock,
  LockModule,
  LockService,
  type LockTimeoutError,
} from '../../lib/index.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let locks: LockService;

beforeEach(() => {
  locks = new LockService({ store: 'memory' });
});

afterEach(async () => {
  await locks.close();
});

const timeoutOf = async (call: Promise<unknown>): Promise<LockTimeoutError> => {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isLockTimeoutError(error)) throw new Error('did not time out', { cause: error });
  return error;
};

const APART = { reentrant: false } as const;

describe('with reentrant: false', () => {
  const kinds: [string, () => Lock][] = [
    ['plain lock', () => locks.getLock('a')],
    ['fair lock', () => locks.getFairLock('a')],
    ['write lock', () => locks.getReadWriteLock('a').write],
    ['multi-lock', () => locks.getMultiLock([locks.getLock('a'), locks.getFairLock('b')])],
  ];

  it.each(kinds)('a nested call for a %s is an owner of its own', async (_, lockOf) => {
    const lock = lockOf();
    await lock.using(async () => {
      expect(await lock.tryAcquire(APART)).toBeNull();
      const again = await lock.tryAcquire();
      expect(again).not.toBeNull();
      await again?.release();
    });
  });

  it.each(kinds)('no nested call enters a %s that was taken so', async (_, lockOf) => {
    const lock = lockOf();
    await lock.using(APART, async () => {
      expect([lock.isHeld(), lock.holdCount()]).toEqual([true, 1]);
      expect(await lock.tryAcquire()).toBeNull();
    });
    expect(await lock.isLocked()).toBe(false);
  });

  it('the two sides of a read-write lock wait for each other, as for any other owner', async () => {
    const { read, write } = locks.getReadWriteLock('a');
    await write.using(async () => {
      expect(await read.tryAcquire(APART)).toBeNull();
    });
    await read.using(async () => {
      await expect(write.tryAcquire()).rejects.toThrow('cannot become the writer');
      expect(await write.tryAcquire(APART)).toBeNull();
    });
  });

  it('the module decides for all calls that do not say it', async () => {
    const apart = new LockService({ store: 'memory', ...APART });
    await apart.using('a', async () => {
      expect(await apart.tryAcquire('a')).toBeNull();
    });
    await apart.using('a', { reentrant: true }, async () => {
      const again = await apart.tryAcquire('a', { reentrant: true });
      expect(again).not.toBeNull();
      await again?.release();
      expect(await apart.tryAcquire('a')).toBeNull();
    });
    await apart.close();
  });

  it('a decorator and a preset say it, too', async () => {
    @Injectable()
    class Accounts {
      @DistributedLock('account:$<args[0]>', { ...APART, waitTime: 0, onBusy: () => 'busy' })
      async pay(_id: string, then?: () => Promise<unknown>): Promise<unknown> {
        return await then?.();
      }

      @DistributedLock('account:$<args[0]>', { preset: 'apart', onBusy: () => 'busy' })
      async refund(_id: string, then?: () => Promise<unknown>): Promise<unknown> {
        return await then?.();
      }
    }
    const presets = { apart: { ...APART, waitTime: 0 } };
    const app = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory', presets })],
      providers: [Accounts],
    }).compile();
    await app.init();
    const accounts = app.get(Accounts);
    expect(await accounts.pay('7', () => accounts.refund('7'))).toBe('busy');
    expect(await accounts.refund('7', () => accounts.pay('7'))).toBe('busy');
    expect(await accounts.pay('7', () => accounts.refund('8', async () => await pass(1, 'done')))).toBe(
      'done',
    );
    await app.close();
  });
});

describe('a caller that waits in vain', () => {
  it('for its own outer call is told so', async () => {
    await locks.using('a', async () => {
      const error = await timeoutOf(locks.acquire('a', { ...APART, waitTime: 5 }));
      expect(error.message).toContain("this caller's own outer call, which it does not re-enter");
      expect(error.publicMessage).toBe('The resource is busy, try again later');
      const apart = await timeoutOf(locks.runInScope(() => locks.acquire('a', { waitTime: 5 })));
      expect(apart.message).toContain("this caller's own outer call");
    });
  });

  it('for the only permit, which it has itself, is told so', async () => {
    const permits = locks.getSemaphore('a', 1);
    await permits.using(async () => {
      const { message } = await timeoutOf(permits.acquire({ waitTime: 5 }));
      expect(message).toContain("this caller's own outer call");
    });
  });

  it('for another call of the service is told its label and, where it was taken by hand, the place', async () => {
    const first = await locks.acquire('a', { label: 'pay' });
    const same = await timeoutOf(locks.acquire('a', { label: 'pay', waitTime: 5 }));
    expect(same.message).toMatch(
      /another call of this service with the same label "pay", taken at .*reentrant\.spec\.ts:\d+:\d+$/,
    );
    const other = await timeoutOf(locks.acquire('a', { label: 'refund', waitTime: 5 }));
    expect(other.message).toContain('another call of this service with the label "pay"');
    await first.release();
  });
});
