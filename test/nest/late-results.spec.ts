import 'reflect-metadata';
import { createReadStream } from 'node:fs';
import type { Server } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { lastValueFrom, Observable, of } from 'rxjs';
import {
  assertLocked,
  DistributedLock,
  type DistributedLockOptions,
  LockInterceptor,
  LockModule,
  LockService,
} from '../../lib/index.js';
import { until } from '../scenarios/until.js';

let app: TestingModule | undefined;
let stop = () => app?.close();

afterEach(async () => {
  await stop();
  stop = () => app?.close();
});

const store = 'memory';
const isLocked = () => app!.get(LockService).getLock('rows').isLocked();

/** A service with a method that gives this. */
const serving = async (give: () => unknown, options: DistributedLockOptions = {}) => {
  @Injectable()
  class Rows {
    @DistributedLock('rows', options)
    async give(): Promise<unknown> {
      return Promise.resolve(give());
    }
    @DistributedLock('rows')
    stream(): Observable<unknown> {
      return of(give());
    }
  }
  app = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store })],
    providers: [Rows],
  }).compile();
  return app.get(Rows);
};

let ran = false;
async function* asyncRows() {
  ran = true;
  yield Promise.resolve(1);
}
function* rows() {
  ran = true;
  yield 1;
}
const source = () =>
  new Readable({
    read: () => {
      ran = true;
    },
  });

const webStream = () =>
  new ReadableStream(
    {
      pull: () => {
        ran = true;
      },
    },
    { highWaterMark: 0 },
  );

const LATE: [string, () => unknown][] = [
  ['an async generator', asyncRows],
  ['a generator', rows],
  ['an iterator', () => new Map([[1, 2]]).values()],
  ['an object that is iterated asynchronously', () => ({ [Symbol.asyncIterator]: asyncRows })],
  ['an object that is its own iterator', () => ({ [Symbol.iterator]: rows, next: () => ({ done: true }) })],
  ['a Readable', source],
  ['a Readable of an iterator', () => Readable.from(asyncRows())],
  ['a PassThrough', () => new PassThrough()],
  ['a web stream', () => webStream()],
  ['a StreamableFile', () => new StreamableFile(source())],
  ['a Response', () => new Response(webStream())],
  ['a Response of text', () => new Response('rows')],
  ['a file that is missing', () => createReadStream('/nowhere/at/all')],
];

describe('a method that gives what is read when its lock is gone', () => {
  it.each(LATE)('%s, is refused with the cures (pitfall 65)', async (_, give) => {
    ran = false;
    const call = (await serving(give)).give();
    await expect(call).rejects.toMatchObject({
      code: 'LOCK_CONFIG',
      message: expect.stringMatching(/Rows\.give.*its lock is gone.*Observable.*LockInterceptor/s),
    });
    expect(await isLocked()).toBe(false);
    await sleep(5);
    expect(ran).toBe(false);
  });

  it.each(LATE)('%s, is refused as a value of an Observable', async (_, give) => {
    const streamed = lastValueFrom((await serving(give)).stream());
    await expect(streamed).rejects.toThrow(/Rows\.stream.*its lock is gone/s);
    expect(await isLocked()).toBe(false);
  });

  it('ends what it refuses, which may hold a file or a connection open', async () => {
    const file = source();
    let ended = 0;
    const cursor = { [Symbol.asyncIterator]: asyncRows, return: () => ++ended };
    const web = new ReadableStream({
      cancel: () => {
        ended++;
      },
    });
    const body = new ReadableStream({
      cancel: () => {
        ended++;
      },
    });
    for (const give of [() => new StreamableFile(file), () => cursor, () => web, () => new Response(body)]) {
      await (await serving(give)).give().catch(() => undefined);
    }
    expect(file.destroyed).toBe(true);
    expect(ended).toBe(3);
  });

  const mock: object = new Proxy({}, { get: (_, name) => (typeof name === 'symbol' ? () => 1 : undefined) });
  const read = new Response('rows');
  void read.text();
  class Bag {
    *[Symbol.iterator]() {
      yield 1;
    }
  }
  it.each<[string, unknown]>([
    ['an array', [1, 2]],
    ['a text', 'rows'],
    ['a Map', new Map()],
    ['a Set', new Set()],
    ['a Buffer', Buffer.from('rows')],
    ['a typed array', new Float64Array(2)],
    ['a collection of the application', new Bag()],
    ['a linked list, whose next is a node', { next: {}, [Symbol.iterator]: rows }],
    ['a function that gives a stream', () => source()],
    ['a StreamableFile of bytes', new StreamableFile(Buffer.from('rows'))],
    ['a stream that has ended', source().destroy()],
    ['a Response without a body', new Response(null)],
    ['a Response that has been read', read],
    ['a response of a test library', { setHeader: () => undefined, writableEnded: false }],
    ['a Blob', new Blob(['rows'])],
    ['a mock that has a function for every symbol', mock],
    ['null', null],
    ['a function', asyncRows],
  ])('%s, is given as it is: it is there already', async (_, value) => {
    expect(await (await serving(() => value)).give()).toBe(value);
  });
});

describe('an Observable that gives a Promise, which Nest would wait for without the lock', () => {
  it('is refused, and the work of one that begins when it is asked does not begin', async () => {
    const then = jest.fn();
    const streamed = lastValueFrom((await serving(() => ({ then }))).stream());
    await expect(streamed).rejects.toThrow(/a Promise.*its lock is gone/s);
    expect(then).not.toHaveBeenCalled();
    expect(await isLocked()).toBe(false);
  });
});

describe('LockInterceptor', () => {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  let file: Readable;
  let left: number;

  /** Asks whether the lock is held whenever it is read. */
  const slowFile = (chunks: number) => {
    left = chunks;
    file = new Readable({
      read() {
        void isLocked().then((locked) => {
          if (!locked) this.destroy(new Error('read without its lock'));
          else this.push(left-- > 0 ? chunk : null);
        });
      },
    });
    return new StreamableFile(file);
  };

  @Controller()
  @UseInterceptors(LockInterceptor('rows', { waitTime: 5_000 }))
  class Files {
    @Get('file')
    file() {
      assertLocked('rows');
      return slowFile(100);
    }
    @Get('endless')
    endless() {
      return slowFile(Infinity);
    }
    @Get('bytes')
    bytes() {
      return new StreamableFile(Buffer.from('bytes'));
    }
    @Get('rows')
    rows() {
      return asyncRows();
    }
  }

  const serve = async () => {
    const imports = [LockModule.forRoot({ store })];
    app = await Test.createTestingModule({ imports, controllers: [Files] }).compile();
    const http: INestApplication<Server> = app.createNestApplication();
    http.useLogger(false);
    await http.listen(0, '127.0.0.1');
    stop = async () => {
      http.getHttpServer().closeAllConnections();
      await http.close();
    };
    return await http.getUrl();
  };

  it('holds the lock until a file has been sent', async () => {
    const url = await serve();
    const bodies = await Promise.all(
      [1, 2].map(async () => (await (await fetch(`${url}/file`)).arrayBuffer()).byteLength),
    );
    expect(bodies).toEqual([100 * chunk.length, 100 * chunk.length]);
    await until(async () => !(await isLocked()));
    expect(await (await fetch(`${url}/bytes`)).text()).toBe('bytes');
  });

  it('holds it no longer than the client stays', async () => {
    const url = await serve();
    const client = new AbortController();
    const response = await fetch(`${url}/endless`, { signal: client.signal });
    await response.body!.getReader().read();
    expect(await isLocked()).toBe(true);
    client.abort();
    await until(async () => !(await isLocked()));
  });

  it.each(LATE)('refuses %s where there is no response to wait for', async (_, give) => {
    app = await Test.createTestingModule({ imports: [LockModule.forRoot({ store })] }).compile();
    const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
    class Handlers {
      readonly name = 'handlers';
    }
    const context = {
      getType: () => 'rpc',
      getArgs: () => [],
      getClass: () => Handlers,
      getHandler: () => give,
    } as unknown as ExecutionContext;
    const next: CallHandler = { handle: () => of(give()) };
    const answer = lastValueFrom(await interceptor.intercept(context, next));
    await expect(answer).rejects.toThrow(/its lock is gone.*in the handler/);
    expect(await isLocked()).toBe(false);
  });
});
