/**
 * Under Nest. The number is that of a list of verified defects of lock libraries; what is tested is that ours does not have it.
 *
 * 67  `AbortSignal.any` on a signal that outlives the call keeps every call's dependants.
 */
import 'reflect-metadata';
import { getEventListeners } from 'node:events';
import { types } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { lastValueFrom, type Observable, of, timer } from 'rxjs';
import {
  DistributedLock,
  type DistributedLockOptions,
  type Lock,
  LockModule,
  LockService,
} from '../../lib/index.js';
import { Stage, until } from './stage.js';

const stage = Stage.set();

/** What hangs from a signal: its listeners, and the signals that `AbortSignal.any` has made of it. */
function hangingFrom(signal: AbortSignal): number {
  const parts = Reflect.ownKeys(signal).map(
    (key) => (signal as unknown as Record<symbol, unknown>)[key as symbol],
  );
  const dependants = parts.filter((part) => types.isSet(part)).reduce((sum, set) => sum + set.size, 0);
  return getEventListeners(signal, 'abort').length + dependants;
}

describe('a signal that outlives the calls (pitfall 67)', () => {
  const streaming = async (options: DistributedLockOptions) => {
    @Injectable()
    class Streams {
      @DistributedLock('stream', { returns: 'observable', ...options })
      stream(): Observable<number> {
        return of(1, 2);
      }
      @DistributedLock('other', { returns: 'observable', ...options })
      slow(): Observable<number> {
        return timer(20);
      }
    }
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ connection: stage.server.url })],
      providers: [Streams],
    }).compile();
    return { streams: module.get(Streams), module };
  };

  it('keeps nothing of a method that returns an Observable, and has few listeners meanwhile', async () => {
    const { signal } = new AbortController();
    const { streams, module } = await streaming({ signal });
    const calls = Array.from({ length: 12 }, () => lastValueFrom(streams.stream()));
    expect(hangingFrom(signal)).toBe(1);
    await Promise.all(calls);
    await Promise.all([1, 2, 3].map(() => lastValueFrom(streams.slow())));
    const left = streams.slow().subscribe();
    left.unsubscribe();
    expect(hangingFrom(signal)).toBe(0);
    await module.close();
  });

  it.each<[string, (locks: LockService) => Lock]>([
    ['plain', (locks) => locks.getLock('a')],
    ['fair', (locks) => locks.getFairLock('a')],
    ['multi', (locks) => locks.getMultiLock([locks.getLock('a'), locks.getLock('b')])],
  ])('has one listener for all waiters of a %s lock, and none afterwards', async (_, lockOf) => {
    const [holder, locks] = [stage.service(), stage.service()];
    const lease = await lockOf(holder).acquire();
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = Array.from({ length: 12 }, (_, n) =>
      lockOf(locks).using({ signal, waitTime: n < 6 ? 20 : 10_000 }, () => n),
    );
    await until(() => getEventListeners(signal, 'abort').length === 1);
    const results = Promise.allSettled(waiting);
    await Promise.allSettled(waiting.slice(0, 6));
    expect(hangingFrom(signal)).toBe(1);
    await lease.release();
    expect((await results).map(({ status }) => status)).toEqual([
      ...Array.from({ length: 6 }, () => 'rejected'),
      ...Array.from({ length: 6 }, () => 'fulfilled'),
    ]);
    expect(hangingFrom(signal)).toBe(0);

    await lockOf(holder).using(async () => {
      const given = Promise.allSettled([1, 2].map(() => lockOf(locks).acquire({ signal })));
      await until(() => getEventListeners(signal, 'abort').length === 1);
      controller.abort(new Error('enough'));
      expect(
        (await given).map((result) => (result.status === 'rejected' ? (result.reason as unknown) : result)),
      ).toEqual([1, 2].map(() => expect.objectContaining({ code: 'LOCK_ABORTED' })));
    });
    expect(hangingFrom(signal)).toBe(0);
  });
});
