import 'reflect-metadata';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { finalize, interval, Observable, of, take, throwError } from 'rxjs';
import { currentLease, DistributedLock, LockModule, LockService } from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';

const caller = new AsyncLocalStorage<string>();
let source: () => Observable<unknown>;

@Injectable()
class Feed {
  @DistributedLock('feed', { onLost: 'throw' })
  events(): Observable<unknown> {
    return caller.run('producer', () => source());
  }
}

let app: TestingModule;
let feed: Feed;
let locks: LockService;

beforeEach(async () => {
  app = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: 'memory' })],
    providers: [Feed],
  }).compile();
  await app.init();
  feed = app.get(Feed);
  locks = app.get(LockService);
});

afterEach(async () => {
  await app.close();
});

/** What the code that runs now sees of its surroundings. */
const surroundings = () => ({
  caller: caller.getStore(),
  feed: locks.getLock('feed').isHeld(),
  outer: locks.getLock('outer').isHeld(),
  lease: currentLease()?.name,
});

/** Subscribes until the end, and notes what each callback of the subscriber sees. */
const watch = (stream: Observable<unknown>) =>
  new Promise<[string, ReturnType<typeof surroundings>][]>((resolve) => {
    const seen: [string, ReturnType<typeof surroundings>][] = [];
    const note = (callback: string) => {
      seen.push([callback, surroundings()]);
    };
    stream
      .pipe(
        finalize(() => {
          note('finalize');
        }),
      )
      .subscribe({
        next: () => {
          note('next');
        },
        error: () => {
          note('error');
          setImmediate(resolve, seen);
        },
        complete: () => {
          note('complete');
          setImmediate(resolve, seen);
        },
      });
  });

describe('the subscriber of a locked stream', () => {
  it.each([
    { way: 'at once', emit: () => of(1, 2), callbacks: ['next', 'next', 'complete', 'finalize'] },
    {
      way: 'later',
      emit: () =>
        new Observable((to) => {
          setTimeout(() => {
            to.next(1);
          }, 5);
          setTimeout(() => {
            to.complete();
          }, 10);
        }),
      callbacks: ['next', 'complete', 'finalize'],
    },
    { way: 'an error', emit: () => throwError(() => new Error()), callbacks: ['error', 'finalize'] },
  ])('is in the context of its subscription when the source emits $way', async ({ emit, callbacks }) => {
    source = emit;
    const outside = { caller: 'subscriber', feed: false, outer: false, lease: undefined };
    expect(await caller.run('subscriber', () => watch(feed.events()))).toEqual(
      callbacks.map((callback) => [callback, outside]),
    );
    const inside = { ...outside, outer: true, lease: 'outer' };
    expect(await locks.using('outer', () => caller.run('subscriber', () => watch(feed.events())))).toEqual(
      callbacks.map((callback) => [callback, inside]),
    );
  });

  it('competes like any other caller for what it locks by hand (pitfall 44)', async () => {
    const entries = new Entries();
    // Each value comes while the handler of the one before holds its lock.
    source = () => interval(10).pipe(take(3));
    const handled: Promise<void>[] = [];
    const handle = async () => {
      const lease = await locks.acquire('account:7');
      await entries.visit(undefined, 'account:7', 25);
      await lease.release();
    };
    await new Promise<void>((complete) => {
      feed.events().subscribe({ next: () => handled.push(handle()), complete });
    });
    await Promise.all(handled);
    expect(entries).toMatchObject({ total: 3, most: 1 });
  });
});

describe('the source of a locked stream', () => {
  it.each(['is unsubscribed from', 'loses its lock'])('cleans up under its lock when it %s', async (way) => {
    const seen: unknown[] = [];
    source = () => new Observable(() => () => seen.push(surroundings().lease));
    const ended = new Promise((resolve) => {
      const subscription = feed.events().subscribe({ error: resolve });
      if (way === 'is unsubscribed from') {
        setTimeout(() => {
          subscription.unsubscribe();
          resolve(undefined);
        }, 5);
      }
    });
    await sleep(5);
    if (way === 'loses its lock') await locks.forceRelease('feed');
    await ended;
    expect(seen).toEqual(['feed']);
  });
});
