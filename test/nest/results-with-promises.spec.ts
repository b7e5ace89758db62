import 'reflect-metadata';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CallHandler, type ExecutionContext, Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { lastValueFrom, of } from 'rxjs';
import { DistributedLock, LockInterceptor, LockModule, LockService } from '../../lib/index.js';

let app: TestingModule;
let locks: LockService;
let names = 0;

@Injectable()
class Rows {
  @DistributedLock('rows:$<args[0]>')
  async give(_: string, give: () => unknown): Promise<unknown> {
    return Promise.resolve(give());
  }
  @DistributedLock('rows:$<args[0]>', { returns: 'observable' })
  stream(_: string, give: () => unknown) {
    return of(give());
  }
}

beforeAll(async () => {
  app = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: 'memory' })],
    providers: [Rows],
  }).compile();
  locks = app.get(LockService);
});
afterAll(() => app.close());

const intercepted = (name: string, give: () => unknown) => {
  class Handler {
    give(): void {
      throw new Error('is not called');
    }
  }
  const interceptor = new (LockInterceptor(`rows:${name}`))(locks);
  const context = {
    getClass: () => Handler,
    getHandler: () => Handler.prototype.give.bind(undefined),
    getType: () => 'rpc',
    getArgs: () => [],
  };
  const next: CallHandler = { handle: () => of(give()) };
  return lastValueFrom(interceptor.intercept(context as unknown as ExecutionContext, next) as never);
};

type Way = (name: string, give: () => unknown) => Promise<unknown>;
const WAYS: [string, Way][] = [
  ['a locked method', (name, give) => app.get(Rows).give(name, give)],
  ['a locked Observable', (name, give) => lastValueFrom(app.get(Rows).stream(name, give))],
  ['LockInterceptor', intercepted],
  ['using', (name, give) => locks.using(`rows:${name}`, give)],
  [
    'once',
    async (name, give) => {
      const result = await locks.once(`rows:${name}`, { period: '1h' }, give);
      return result.ran ? result.value : undefined;
    },
  ],
];

function* rows() {
  yield 1;
}
const open = () => new Readable({ read: () => undefined });
/** Begins its work where it is asked for its result. */
const query = { then: () => 1 };

describe.each(WAYS)('%s, whose result has what is read without the lock', (_, way) => {
  const isLocked = (name: string) => locks.getLock(`rows:${name}`).isLocked();

  it.each<[string, string, () => unknown]>([
    ['an array of Promises', 'a Promise', () => [1, 2].map(async (n) => Promise.resolve(n))],
    ['an array with one Promise', 'a Promise', () => [1, null, Promise.resolve(2)]],
    ['a Map', 'a Promise', () => new Map([['a', Promise.resolve(1)]])],
    ['a Set', 'a Promise', () => new Set([Promise.resolve(1)])],
    ['an object', 'a Promise', () => ({ id: 1, rows: Promise.resolve([]) })],
    [
      'an object without a prototype',
      'a Promise',
      () => Object.assign(Object.create(null) as object, { query }),
    ],
    ['an array of queries', 'a Promise', () => [query]],
    ['an array of streams', 'a stream', () => [open()]],
    ['an object with an iterator', 'an iterator', () => ({ rows: rows() })],
  ])('refuses %s', async (__, found, give) => {
    const name = String(++names);
    const message = new RegExp(
      `has given a collection with ${found} in it, which is read when .* its lock is gone`,
    );
    await expect(way(name, give)).rejects.toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
    await expect(way(`${name}b`, give)).rejects.toThrow(message);
    expect(await isLocked(name)).toBe(false);
  });

  it('keeps the lock until the work in it has ended, and tells of the mistake only (pitfall 83)', async () => {
    const name = String(++names);
    const ends: (() => void)[] = [];
    const steps: unknown[] = [];
    const work = async (n: number) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      steps.push(await isLocked(name));
      if (n === 2) throw new Error('of the work');
    };
    const outcome = expect(way(name, () => [1, 2, 3].map(work))).rejects.toThrow('Promise.all');
    while (ends.length < 3) await setImmediate();
    await setImmediate();
    expect(await isLocked(name)).toBe(true);
    for (const end of ends) end();
    await outcome;
    expect(steps).toEqual([true, true, true]);
    expect(await isLocked(name)).toBe(false);
  });

  it('ends the streams that it refuses', async () => {
    const streams = [open(), open()];
    await expect(way(String(++names), () => ({ streams, first: streams[0] }))).rejects.toThrow('a stream');
    expect(streams.map(({ destroyed }) => destroyed)).toEqual([true, false]);
  });

  class Report {
    readonly rows = Promise.resolve([]);
  }
  it.each<[string, unknown]>([
    ['an object of a class', new Report()],
    ['what stands deeper', { page: { rows: Promise.resolve([]) }, list: [[Promise.resolve(1)]] }],
    [
      'a getter, which it does not call',
      {
        get rows() {
          throw new Error('called');
        },
      },
    ],
    ['functions', { rows: () => Promise.resolve([]), list: rows }],
    ['values that are there', [1, 'a', null, undefined, { id: 1 }, [2], new Map([['a', 1]]), new Date(0)]],
    [
      'values, and a Promise far behind them',
      [...Array.from({ length: 1_000 }, () => 1), Promise.resolve(1)],
    ],
  ])('gives %s', async (__, value) => {
    expect(await way(String(++names), () => value)).toBe(value);
  });
});
