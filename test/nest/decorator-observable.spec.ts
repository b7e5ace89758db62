import 'reflect-metadata';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { EMPTY, lastValueFrom, NEVER, Observable, of, Subject, tap, throwError, timer, toArray } from 'rxjs';
import { assertLocked, currentLease, DistributedLock, type Lease } from '../../lib/index.js';
import { until } from '../scenarios/until.js';
import { DecoratedApp } from './decorated-app.js';

const nest = DecoratedApp.ofEach();

describe('a method that returns an Observable', () => {
  let leases: (Lease | undefined)[];
  let source: () => Observable<unknown>;

  @Injectable()
  class Streams {
    @DistributedLock('stream')
    declared(): Observable<unknown> {
      leases.push(currentLease());
      return source();
    }
    @DistributedLock('stream', { returns: 'observable', waitTime: 0, onBusy: 'skip' })
    skipping() {
      return source();
    }
    @DistributedLock('stream', { returns: 'observable', waitTime: 0, onBusy: () => of('busy', 'busy') })
    answering() {
      return source();
    }
    @DistributedLock('stream', { returns: 'observable', onLost: 'throw' })
    throwing() {
      return source();
    }

    @DistributedLock('stream', { returns: 'observable', signal: (signal: AbortSignal) => signal })
    abortable(signal: AbortSignal) {
      return signal.aborted ? EMPTY : source();
    }

    @DistributedLock('stream')
    undeclared(): never {
      return source() as never;
    }

    @DistributedLock('stream', { returns: 'observable' })
    async promised(): Promise<Observable<unknown>> {
      leases.push(currentLease());
      await sleep(1);
      return source();
    }
    @DistributedLock('stream')
    async unannounced(): Promise<unknown> {
      return Promise.resolve(source());
    }
  }

  const isLocked = () => nest.locks.getLock('stream').isLocked();
  let streams: Streams;

  beforeEach(async () => {
    leases = [];
    source = () => of(1, 2, 3);
    streams = await nest.make(Streams);
  });

  it('does nothing before it is subscribed to', async () => {
    const stream = streams.declared();
    await sleep(5);
    expect(leases).toEqual([]);
    expect(await isLocked()).toBe(false);
    expect(await lastValueFrom(stream.pipe(toArray()))).toEqual([1, 2, 3]);
    expect(await isLocked()).toBe(false);
  });

  it('makes each subscription a call with a lock of its own', async () => {
    source = () =>
      new Observable((subscriber) => {
        nest.entries.enter();
        const end = setTimeout(() => {
          nest.entries.leave();
          subscriber.complete();
        }, 10);
        return () => {
          clearTimeout(end);
        };
      });
    const stream = streams.declared();
    await Promise.all([1, 2, 3].map(() => lastValueFrom(stream, { defaultValue: undefined })));
    expect(nest.entries.total).toBe(3);
    expect(nest.entries.most).toBe(1);
    expect(new Set(leases.map((lease) => lease?.fencingToken)).size).toBe(3);
  });

  it('ends its wait with the signal of its call', async () => {
    const abort = new AbortController();
    const lease = await nest.locks.acquire('stream');
    const waiting = lastValueFrom(streams.abortable(abort.signal));
    await sleep(5);
    abort.abort(new Error('gone'));
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED', cause: { message: 'gone' } });
    await lease.release();
  });

  it('is released when it fails, and the error is its own', async () => {
    const failure = new Error('business');
    source = () => throwError(() => failure);
    await expect(lastValueFrom(streams.declared())).rejects.toBe(failure);
    expect(await isLocked()).toBe(false);
  });

  it('is released when it is unsubscribed from', async () => {
    let stopped = false;
    source = () => new Observable(() => () => (stopped = true));
    const subscription = streams.declared().subscribe();
    await sleep(10);
    expect(await isLocked()).toBe(true);
    subscription.unsubscribe();
    await sleep(5);
    expect(stopped).toBe(true);
    expect(await isLocked()).toBe(false);
  });

  it('leaves the local queue when it is unsubscribed from while it waits', async () => {
    const locks = nest.locks;
    const lease = await locks.acquire('stream');
    const subscription = streams.declared().subscribe();
    await sleep(5);
    expect((await locks.inspect('stream'))?.waiters.local).toBe(1);
    subscription.unsubscribe();
    expect((await locks.inspect('stream'))?.waiters.local).toBe(0);
    await lease.release();
    await sleep(5);
    expect(leases).toEqual([]);
  });

  it('completes without a value, or gives what onBusy gives, when it is busy', async () => {
    const lease = await nest.locks.acquire('stream');
    expect(await lastValueFrom(streams.skipping().pipe(toArray()))).toEqual([]);
    expect(await lastValueFrom(streams.answering().pipe(toArray()))).toEqual(['busy', 'busy']);
    await lease.release();
    expect(await lastValueFrom(streams.answering().pipe(toArray()))).toEqual([1, 2, 3]);
  });

  it("ends with LockLostError at the loss, with onLost 'throw'", async () => {
    source = () => NEVER;
    const ended = lastValueFrom(streams.throwing());
    await sleep(5);
    await nest.locks.forceRelease('stream');
    await expect(ended).rejects.toMatchObject({ code: 'LOCK_LOST', result: undefined });
  });

  it('runs inside the scope of its lock', async () => {
    source = () => {
      assertLocked('stream');
      return timer(1).pipe(
        tap(() => {
          assertLocked('stream');
        }),
      );
    };
    await lastValueFrom(streams.declared());
  });

  it('is never passed on unlocked when nothing has announced it', async () => {
    let subscribed = false;
    source = () => new Observable(() => void (subscribed = true));
    const error = await (streams.undeclared() as Promise<unknown>).catch((reason: unknown) => reason);
    expect((error as Error).message).toMatch(/Streams\.undeclared.*return type.*returns: 'observable'/s);
    expect(subscribed).toBe(false);
    expect(await isLocked()).toBe(false);
  });

  it('may be promised: locked from subscription, while the caller gets its Promise', async () => {
    const promise = streams.promised();
    const stream = await promise.then((observable) => observable);
    expect([leases.length, await isLocked()]).toEqual([0, false]);
    const rows = new Subject<number>();
    source = () => rows;
    const ended = lastValueFrom(stream);
    await until(() => rows.observed);
    expect(await isLocked()).toBe(true);
    rows.next(0);
    rows.complete();
    expect(await ended).toBe(0);
    expect(await isLocked()).toBe(false);
    source = () => of(1);
    await lastValueFrom(stream);
    expect(new Set(leases.map((lease) => lease?.fencingToken)).size).toBe(2);
  });

  it('is told the option that helps where a Promise of one was not announced', async () => {
    const refused = streams.unannounced();
    await expect(refused).rejects.toThrow(/Streams\.unannounced.*returns: 'observable'/s);
    await expect(refused).rejects.not.toThrow(/'promise'/);
  });
});
