import 'reflect-metadata';
import { rmSync, writeFileSync } from 'node:fs';
import type { Server, ServerResponse } from 'node:http';
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
  Res,
  UseInterceptors,
} from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { NextFunction, Response } from 'express';
import { lastValueFrom, of } from 'rxjs';
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
  @Get('file')
  file(@Res() res: Response) {
    res.sendFile(file);
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
  @Get('next')
  async next(@Res() _: Response, @Next() next: NextFunction) {
    await Promise.resolve();
    next();
  }
  @DistributedLock('rows')
  @Redirect('/answered/json')
  @Get('redirect')
  async redirect(@Res() res: Response): Promise<void> {
    await Promise.resolve(res.cookie('a', 'b'));
  }
  @DistributedLock('rows')
  @Get('passthrough')
  async passthrough(@Res({ passthrough: true }) res: Response) {
    res.setHeader('x-lock', 'rows');
    return Promise.resolve({ sent: true });
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
  async resolved(@Res() context: unknown) {
    return Promise.resolve(context);
  }
}

/** What `next` leads to. */
@Controller()
class Behind {
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
    controllers: [Held, Refused, Answered, Busy, Behind],
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
  it.each(['returned', 'begun'])('holds the lock until all has been sent: %s', async (path) => {
    expect(await (await fetch(`${url}/held/${path}`)).text()).toBe('LLLLL');
    await until(async () => !(await isLocked()));
  });

  it('holds it until a file has been sent', async () => {
    const answer = await fetch(`${url}/held/file`);
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

  it.each(['begun', 'patched'])(
    'holds it where instrumentation has wrapped the handler: %s',
    async (name) => {
      const answer = new Readable({ read: () => undefined });
      const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
      const context = contextOf(
        Object.defineProperty(() => undefined, 'name', { value: name }),
        answer,
      );
      await lastValueFrom(await interceptor.intercept(context, { handle: () => of(undefined) }));
      await sleep(10);
      expect(await isLocked()).toBe(true);
      answer.destroy();
      await until(async () => !(await isLocked()));
    },
  );

  it('does not wait for the answer of Nest where instrumentation has wrapped the handler', async () => {
    const answer = new Readable({ read: () => undefined });
    const interceptor = new (LockInterceptor('rows'))(app.get(LockService));
    const handler = Object.defineProperty(() => undefined, 'name', { value: 'passthrough' });
    await lastValueFrom(
      await interceptor.intercept(contextOf(handler, answer), { handle: () => of(undefined) }),
    );
    await until(async () => !(await isLocked()));
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
  it.each(['returned', 'begun', 'file', 'using'])(
    'refuses what is sent later, and cuts it off: %s',
    async (path) => {
      const answer = fetch(`${url}/refused/${path}`).then((received) => received.text());
      await expect(answer).rejects.toThrow();
      expect(String(logged.mock.calls[0])).toMatch(/left its response unfinished.*LockInterceptor/s);
      await until(async () => !(await isLocked()));
    },
  );

  it.each(['json', 'next', 'passthrough', 'redirect'])(
    'takes an answer that has been given: %s',
    async (path) => {
      expect(await (await fetch(`${url}/answered/${path}`)).json()).toEqual({ sent: true });
      expect(logged).not.toHaveBeenCalled();
      expect(await isLocked()).toBe(false);
    },
  );
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
      const answer = await fetch(`${url}/busy/${path}`, { signal: AbortSignal.timeout(60_000) });
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

  it('is not a resolver, whose context has the number of a response', async () => {
    const lease = await app.get(LockService).acquire('rows');
    expect(await app.get(Busy).resolved({ user: 'bob' })).toBe('instead');
    await lease.release();
  });
});
