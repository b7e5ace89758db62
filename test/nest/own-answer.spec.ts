import 'reflect-metadata';
import { rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import {
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type Http2ServerResponse,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Next,
  Redirect,
  Render,
  Res,
  Sse,
  UseInterceptors,
} from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { NextFunction, Response } from 'express';
import { from, lastValueFrom, Observable, of } from 'rxjs';
import { DistributedLock, LockInterceptor, LockModule, LockService } from '../../lib/index.js';
import { until } from '../scenarios/until.js';

let app: INestApplication<Server>;
let url: string;

const isLocked = () => app.get(LockService).getLock('rows').isLocked();
const file = join(tmpdir(), `own-answer-${String(process.pid)}.txt`);
const size = 4_000_000;

/** Each row says whether the lock is held when it is read. */
const rows = (count = 5) => {
  let left = count;
  return new Readable({
    read() {
      setTimeout(() => {
        void isLocked().then((locked) => this.push(left-- === 0 ? null : locked ? 'L' : 'u'));
      }, 5).unref();
    },
  });
};

let response: Response;

@Controller('held')
@UseInterceptors(LockInterceptor('rows'))
class Held {
  @Get('returned')
  returned(@Res() res: Response) {
    return rows().pipe(res);
  }
  @Get('begun')
  begun(@Res() res: Response) {
    rows().pipe(res);
  }
  @Get('stream')
  stream(@Res() res: Response): Observable<unknown> {
    rows().pipe(res);
    return of(1, 2);
  }
  @Get('next')
  next(@Next() next: NextFunction) {
    next();
  }
  @Get('file')
  file(@Res() res: Response) {
    res.sendFile(file);
  }
  @Get('download')
  download(@Res() res: Response) {
    res.download(file);
  }
  @Get('json')
  json(@Res() res: Response) {
    return res.json({ sent: true });
  }
  @Get('endless')
  endless(@Res() res: Response) {
    rows(Infinity).pipe(res);
  }
  @Get('gone')
  async gone(@Res() res: Response) {
    response = res;
    await until(() => res.closed);
  }
  @Get('error')
  error(@Res() res: Response) {
    response = res;
    throw new Error('of the handler');
  }
  @Get('cut')
  @UseInterceptors(LockInterceptor('cut', { onLost: 'throw' }))
  cut(@Res() res: Response) {
    rows(Infinity).pipe(res);
  }
  @Get('passthrough')
  passthrough(@Res({ passthrough: true }) res: Response) {
    res.setHeader('x-lock', 'rows');
    return 'sent by Nest';
  }
}

class Declared {
  @UseInterceptors(LockInterceptor('rows'))
  @Get('returned')
  returned(@Res() res: Response) {
    return rows().pipe(res);
  }
}

/** Has the methods and the constructor of another class, where Nest's record of their parameters stays. */
@Controller('copied')
class Copied {}
Object.defineProperties(Copied.prototype, Object.getOwnPropertyDescriptors(Declared.prototype));

@Controller('refused')
class Refused {
  @DistributedLock('rows')
  @Get('returned')
  async returned(@Res() res: Response) {
    return Promise.resolve(rows().pipe(res));
  }
  @DistributedLock('rows')
  @Get('begun')
  async begun(@Res() res: Response) {
    await Promise.resolve(rows().pipe(res));
  }
  @DistributedLock('rows')
  @Get('file')
  async file(@Res() res: Response): Promise<void> {
    await Promise.resolve();
    res.sendFile(file);
  }
  @DistributedLock('rows')
  @Get('stream')
  stream(@Res() res: Response): Observable<number> {
    rows().pipe(res);
    return of(1);
  }
  @DistributedLock('rows')
  @Get('next')
  async next(@Res() res: Response, @Next() next: NextFunction): Promise<void> {
    await Promise.resolve();
    res.sendFile(file, (error: unknown) => {
      if (error) next(error);
    });
  }
  @DistributedLock('rows')
  @Get('status')
  async status(@Res() res: Response) {
    return Promise.resolve(res.status(201));
  }
  @Get('using')
  async using(@Res() res: Response) {
    await app.get(LockService).using('rows', () => rows().pipe(res));
  }
}

@Controller('answered')
class Answered {
  @DistributedLock('rows')
  @Get('json')
  async json(@Res() res: Response) {
    return Promise.resolve(res.json({ sent: true }));
  }
  @DistributedLock('rows')
  @Get('late')
  async late(@Res() res: Response): Promise<void> {
    await Promise.resolve();
    // As middleware does that compresses: the response ends later than the handler has ended it.
    const { end } = res;
    res.end = ((...args: Parameters<Response['end']>) => {
      res.flushHeaders();
      setTimeout(() => end.apply(res, args), 20);
      return res;
    }) as typeof res.end;
    res.json({ sent: true });
  }
  @DistributedLock('rows')
  @Get('next')
  async next(@Res() _: Response, @Next() next: NextFunction) {
    await Promise.resolve();
    next();
  }
  @DistributedLock('rows')
  @Get('passthrough')
  async passthrough(@Res({ passthrough: true }) res: Response) {
    res.setHeader('x-lock', 'rows');
    return Promise.resolve({ sent: true });
  }
  @DistributedLock('rows')
  @Render('rows')
  @Get('render')
  async render(@Res() res: Response) {
    res.render = ((_: string, data: object) => res.json(data)) as Response['render'];
    return Promise.resolve({ sent: true });
  }
  @Get('chained')
  async chained(@Res() res: Response) {
    const given = await app.get(LockService).using('rows', () => res.status(201));
    (await this.prepare(given)).json({ sent: true });
  }
  @Get('cookie')
  async cookie(@Res({ passthrough: true }) res: Response) {
    await app.get(LockService).using('rows', () => Promise.resolve(res.cookie('a', 'b')));
    return { sent: true };
  }
  @DistributedLock('rows')
  async prepare(res: Response) {
    return Promise.resolve(res.status(202));
  }
  @DistributedLock('rows')
  @Redirect('/answered/json')
  @Get('redirect')
  async redirect(@Res() res: Response): Promise<void> {
    await Promise.resolve(res.cookie('a', 'b'));
  }
  @Sse('events')
  @DistributedLock('rows')
  events(@Res() res: Response): Observable<{ data: string }> {
    res.setHeader('x-lock', 'rows');
    return of({ data: 'sent' });
  }
}

const teapot = () => {
  throw new HttpException('somebody else is at it', 418);
};

@Controller('busy')
class Busy {
  @UseInterceptors(LockInterceptor('rows', { waitTime: 0, onBusy: 'skip' }))
  @Get('skipped')
  skipped(@Res() res: Response) {
    res.json({ sent: true });
  }
  @UseInterceptors(LockInterceptor('rows', { waitTime: 0, onBusy: () => 'instead' }))
  @Get('replaced')
  replaced(@Next() next: NextFunction) {
    next();
  }
  @UseInterceptors(LockInterceptor('rows', { waitTime: 0, onBusy: teapot }))
  @Get('thrown')
  thrown(@Res() res: Response) {
    res.json({ sent: true });
  }
  @UseInterceptors(LockInterceptor('rows', { waitTime: 0, onBusy: () => 'instead' }))
  @Get('passthrough')
  passthrough(@Res({ passthrough: true }) res: Response) {
    return `sent by Nest after ${String(res.statusCode)}`;
  }
  @UseInterceptors(LockInterceptor('rows', { waitTime: 0, onBusy: 'skip' }))
  @Redirect('/answered/json')
  @Get('redirect')
  redirect(@Res() res: Response): void {
    res.cookie('a', 'b');
  }
  @DistributedLock('rows', { waitTime: 0, onBusy: 'skip' })
  @Get('method/skipped')
  async skippedMethod(@Res() res: Response) {
    await Promise.resolve(res.json({ sent: true }));
  }
  @DistributedLock('rows', { waitTime: 0, onBusy: () => 'instead' })
  @Get('method/replaced')
  async replacedMethod(@Next() next: NextFunction) {
    await Promise.resolve();
    next();
  }
  @DistributedLock('rows', { waitTime: 0, onBusy: teapot })
  @Get('method/thrown')
  async thrownMethod(@Res() res: Response) {
    await Promise.resolve(res.json({ sent: true }));
  }
  @DistributedLock('rows', { waitTime: 0, onBusy: () => 'instead' })
  @Get('method/passthrough')
  async passthroughMethod(@Res({ passthrough: true }) res: Response) {
    return Promise.resolve(`sent by Nest after ${String(res.statusCode)}`);
  }
  @DistributedLock('rows', { waitTime: 0, onBusy: () => 'instead' })
  async resolved(@Res() context: unknown) {
    return Promise.resolve(context);
  }
}

/** What `next` leads to. */
@Controller()
class Behind {
  @Get('held/next')
  rows(@Res() res: Response) {
    rows().pipe(res);
  }
  @Get('answered/next')
  json() {
    return { sent: true };
  }
}

const logged = jest.fn();
/** By single tests. */
const opened: INestApplication[] = [];

beforeEach(async () => {
  writeFileSync(file, Buffer.alloc(size, 'x'));
  logged.mockClear();
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: 'memory' })],
    controllers: [Held, Copied, Refused, Answered, Busy, Behind],
  }).compile();
  app = module.createNestApplication();
  app.useLogger({ log: () => undefined, warn: () => undefined, error: logged });
  await app.listen(0, '127.0.0.1');
  url = await app.getUrl();
});

afterEach(async () => {
  app.getHttpServer().closeAllConnections();
  for (const other of opened.splice(0)) await other.close();
  await app.close();
  rmSync(file);
});

describe('LockInterceptor, on a handler that answers by itself', () => {
  it.each(['held/returned', 'held/begun', 'held/stream', 'held/next', 'copied/returned'])(
    'holds the lock until all has been sent: %s',
    async (path) => {
      expect(await (await fetch(`${url}/${path}`)).text()).toBe('LLLLL');
      await until(async () => !(await isLocked()));
    },
  );

  it.each(['file', 'download'])('holds it until a file has been sent: %s', async (path) => {
    const answer = await fetch(`${url}/held/${path}`);
    expect(await isLocked()).toBe(true);
    const received = await answer.arrayBuffer();
    expect(received.byteLength).toBe(size);
    await until(async () => !(await isLocked()));
  });

  it('releases it when the answer is there at once', async () => {
    expect(await (await fetch(`${url}/held/json`)).json()).toEqual({ sent: true });
    await until(async () => !(await isLocked()));
  });

  it('releases it when the client goes', async () => {
    const client = new AbortController();
    const answer = await fetch(`${url}/held/endless`, { signal: client.signal });
    await answer.body!.getReader().read();
    expect(await isLocked()).toBe(true);
    client.abort();
    await until(async () => !(await isLocked()));
  });

  it('releases it when the client has gone before', async () => {
    const client = new AbortController();
    const answer = fetch(`${url}/held/gone`, { signal: client.signal }).catch(() => undefined);
    await until(isLocked);
    client.abort();
    await answer;
    await until(() => response.closed);
    await until(async () => !(await isLocked()));
  });

  it('releases it when the handler fails', async () => {
    expect((await fetch(`${url}/held/error`)).status).toBe(500);
    await until(async () => !(await isLocked()));
  });

  it("cuts the answer off when the lock is lost, with onLost 'throw'", async () => {
    const reader = (await fetch(`${url}/held/cut`)).body!.getReader();
    await reader.read();
    await app.get(LockService).forceRelease('cut');
    const readOn = async () => {
      while (!(await reader.read()).done);
    };
    await expect(readOn()).rejects.toThrow();
    await until(async () => !(await isLocked()));
  });

  it('leaves the answer to Nest with passthrough', async () => {
    const answer = await fetch(`${url}/held/passthrough`);
    expect([answer.headers.get('x-lock'), await answer.text()]).toEqual(['rows', 'sent by Nest']);
    await until(async () => !(await isLocked()));
  });

  const contextOf = (handler: object, answer: object) =>
    ({
      getType: () => 'http',
      getArgs: () => [],
      getClass: () => Held,
      getHandler: () => handler,
      switchToHttp: () => ({ getRequest: () => ({}), getResponse: () => answer }),
    }) as unknown as ExecutionContext;
  const instrumented = (name: string) => Object.defineProperty(() => undefined, 'name', { value: name });

  it.each(['begun', 'patched', ''])(
    'holds it where instrumentation has wrapped the handler: "%s"',
    async (name) => {
      const answer = new Readable({ read: () => undefined });
      const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
      const context = contextOf(instrumented(name), answer);
      await lastValueFrom(await interceptor.intercept(context, { handle: () => of(undefined) }));
      await sleep(10);
      expect(await isLocked()).toBe(true);
      answer.destroy();
      await until(async () => !(await isLocked()));
    },
  );

  it('finds a handler whose function has another name than the method', async () => {
    const answer = new Readable({ read: () => undefined });
    const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
    const { passthrough } = Held.prototype;
    const name = Object.getOwnPropertyDescriptor(passthrough, 'name');
    Object.defineProperty(passthrough, 'name', { value: 'begun', configurable: true });
    try {
      const context = contextOf(passthrough, answer);
      await lastValueFrom(await interceptor.intercept(context, { handle: () => of(undefined) }));
      await until(async () => !(await isLocked()));
    } finally {
      Object.defineProperty(passthrough, 'name', name ?? {});
    }
  });

  it('does not wait for the answer of Nest where instrumentation has wrapped the handler', async () => {
    const answer = new Readable({ read: () => undefined });
    const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
    const context = contextOf(instrumented('passthrough'), answer);
    await lastValueFrom(await interceptor.intercept(context, { handle: () => of(undefined) }));
    await until(async () => !(await isLocked()));
  });

  it.each<[string, (stream: ClientHttp2Stream, response: Http2ServerResponse) => void]>([
    ['has been sent', (_, res) => res.end('sent')],
    [
      'has lost its client',
      (stream) => {
        stream.close(constants.NGHTTP2_CANCEL);
      },
    ],
  ])('releases it where the response of HTTP/2 %s before the handler ends', async (_, finish) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
    const answering = once(server, 'request') as Promise<[unknown, Http2ServerResponse]>;
    const stream = client.request();
    stream.on('error', () => undefined).resume();
    const [, answer] = await answering;
    const handle = async () => {
      finish(stream, answer);
      await once(answer, 'close');
    };
    const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
    const context = contextOf(Held.prototype.begun, answer);
    await lastValueFrom(await interceptor.intercept(context, { handle: () => from(handle()) }));
    await until(async () => !(await isLocked()));
    client.destroy();
    server.close();
  });

  it("waits for the response inside of Fastify's reply", async () => {
    const raw = new Readable({ read: () => undefined });
    const context = contextOf(Held.prototype.begun, { raw });
    const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
    await lastValueFrom(await interceptor.intercept(context, { handle: () => of(undefined) }));
    await sleep(10);
    expect(await isLocked()).toBe(true);
    raw.destroy();
    await until(async () => !(await isLocked()));
  });
});

describe('@DistributedLock, on a handler that answers by itself', () => {
  it.each(['returned', 'begun', 'file', 'stream', 'next', 'status', 'using'])(
    'refuses what is sent later, and cuts it off: %s',
    async (path) => {
      const answer = fetch(`${url}/refused/${path}`).then((received) => received.text());
      await expect(answer).rejects.toThrow();
      expect(String(logged.mock.calls[0])).toMatch(/left its response unfinished.*LockInterceptor/s);
      await until(async () => !(await isLocked()));
    },
  );

  it.each(['json', 'late', 'next', 'passthrough', 'render', 'redirect', 'chained', 'cookie'])(
    'takes an answer that has been given: %s',
    async (path) => {
      expect(await (await fetch(`${url}/answered/${path}`)).json()).toEqual({ sent: true });
      expect(logged).not.toHaveBeenCalled();
      expect(await isLocked()).toBe(false);
    },
  );

  it('leaves events to Nest', async () => {
    const answer = await fetch(`${url}/answered/events`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('data: sent')]);
    expect(logged).not.toHaveBeenCalled();
    await until(async () => !(await isLocked()));
  });
});

/** Fastify's, as far as it is needed. */
interface Reply {
  readonly raw: ServerResponse;
  send(body: object): PromiseLike<unknown>;
}

describe('@DistributedLock, on a handler that answers by itself under Fastify', () => {
  @Controller()
  class Replies {
    @DistributedLock('rows')
    @Get('sent')
    async sent(@Res() reply: Reply): Promise<void> {
      await reply.send({ sent: true });
    }
    @DistributedLock('rows')
    @Get('piped')
    async piped(@Res() reply: Reply): Promise<void> {
      await Promise.resolve(rows().pipe(reply.raw));
    }
  }

  it('takes an answer that has been given, and refuses what is sent later', async () => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      controllers: [Replies],
    }).compile();
    const fastify = module.createNestApplication(new FastifyAdapter({ forceCloseConnections: true }));
    opened.push(fastify);
    fastify.useLogger({ log: () => undefined, warn: () => undefined, error: logged });
    await fastify.listen(0, '127.0.0.1');
    const at = await fastify.getUrl();
    expect(await (await fetch(`${at}/sent`, { signal: AbortSignal.timeout(60_000) })).json()).toEqual({
      sent: true,
    });
    expect(logged).not.toHaveBeenCalled();
    await expect(fetch(`${at}/piped`).then((answer) => answer.text())).rejects.toThrow();
    expect(String(logged.mock.calls[0])).toMatch(/left its response unfinished/);
  });
});

describe('A handler that answers by itself, while its lock is busy', () => {
  const status = async (path: string) => {
    const lease = await app.get(LockService).acquire('rows');
    try {
      const answer = await fetch(`${url}/busy/${path}`, {
        redirect: 'manual',
        signal: AbortSignal.timeout(60_000),
      });
      return [answer.status, await answer.text()];
    } finally {
      await lease.release();
    }
  };

  it.each(['skipped', 'replaced', 'method/skipped', 'method/replaced'])(
    'is not left open where Nest sends nothing in its place: %s',
    async (path) => {
      expect(await status(path)).toEqual([409, expect.stringContaining('The resource is busy')]);
    },
  );

  it.each(['thrown', 'method/thrown'])("has the error of its onBusy's: %s", async (path) => {
    expect(await status(path)).toEqual([418, expect.stringContaining('somebody else is at it')]);
  });

  it.each(['passthrough', 'method/passthrough'])(
    'has what onBusy gives, where Nest sends it: %s',
    async (path) => {
      expect(await status(path)).toEqual([200, 'instead']);
    },
  );

  it('has the redirection of Nest', async () => {
    expect((await status('redirect'))[0]).toBe(302);
  });

  it('is not a resolver, whose context has the number of a response', async () => {
    const lease = await app.get(LockService).acquire('rows');
    expect(await app.get(Busy).resolved({ user: 'bob' })).toBe('instead');
    await lease.release();
  });
});
