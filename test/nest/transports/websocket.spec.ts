import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type INestApplication, UseInterceptors } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { from } from 'rxjs';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { currentLease, LockInterceptor } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { Busy, ErrorLog, type Failure, FAILURES, Invalid, openShop, secretsOf, Shop } from './shop.js';

const told: string[] = [];

@WebSocketGateway()
class Orders {
  constructor(private readonly shop: Shop) {}

  @SubscribeMessage('fail')
  fail(@MessageBody() name: Exclude<Failure['name'], 'invalid'>) {
    return this.shop.fail(name);
  }

  @SubscribeMessage('stream')
  stream(@MessageBody() name: Exclude<Failure['name'], 'invalid'>) {
    return from(this.shop.fail(name));
  }

  @SubscribeMessage('invalid')
  @UseInterceptors(Invalid())
  invalid() {
    return 'not refused';
  }

  @SubscribeMessage('keyed')
  @UseInterceptors(LockInterceptor('order:$<args[1].id>'))
  keyed() {
    return { event: 'exception', data: currentLease()?.name };
  }

  @SubscribeMessage('slow')
  @UseInterceptors(LockInterceptor('slow'))
  async slow() {
    told.push('begun');
    await sleep(100);
    told.push(`held: ${String(currentLease()?.held)}`);
  }

  @Busy()
  @SubscribeMessage('handler')
  async handler() {
    return Promise.resolve('not refused');
  }
}

/** A client that gives the exceptions it receives, and ends. */
interface Client {
  refusal(event: string, data: unknown): Promise<unknown>;
  close(): Promise<unknown>;
}

const socketIo = async (url: string): Promise<Client> => {
  const socket = io(url, { transports: ['websocket'] });
  await new Promise<void>((resolve) => {
    socket.once('connect', resolve);
  });
  return {
    refusal: (event, data) =>
      new Promise((resolve) => {
        socket.once('exception', resolve);
        socket.emit(event, data);
      }),
    close: () => Promise.resolve(socket.close()),
  };
};

const native = async (url: string): Promise<Client> => {
  const socket = new WebSocket(url.replace('http', 'ws'));
  await once(socket, 'open');
  return {
    refusal: async (event, data) => {
      socket.send(JSON.stringify({ event, data }));
      const [message] = (await once(socket, 'message')) as [Buffer];
      const received = JSON.parse(String(message)) as { event: string; data: unknown };
      return received.event === 'exception' ? received.data : received;
    },
    close: () => {
      socket.close();
      return once(socket, 'close');
    },
  };
};

describe.each([
  ['Socket.IO', (app: INestApplication) => new IoAdapter(app), socketIo],
  ['ws', (app: INestApplication) => new WsAdapter(app), native],
])('a gateway of %s', (_, makeAdapter, connect) => {
  let app: INestApplication;
  let client: Client;
  const log = ErrorLog.ofEach();

  beforeAll(async () => {
    app = await openShop({ providers: [Orders] }, log, (module) => {
      const made = module.createNestApplication();
      return made.useWebSocketAdapter(makeAdapter(made));
    });
    client = await connect(await app.getUrl());
  });

  afterAll(async () => {
    await client.close();
    await app.close();
  });

  it.each(FAILURES)('tells a client: $name', async ({ name, code, message, isLogged }) => {
    const exception = await client.refusal(name === 'invalid' ? name : 'fail', name);
    expect(exception).toEqual({ status: 'error', code, message });
    for (const secret of secretsOf(app)) expect(JSON.stringify(exception)).not.toContain(secret);
    // An outage is logged once, however many calls meet it.
    if (name === 'down') expect(log.errors.length).toBeLessThanOrEqual(1);
    else expect(log.errors).toHaveLength(isLogged ? 1 : 0);
  });

  it('locks a handler by its message', async () => {
    expect(await client.refusal('keyed', { id: 7 })).toBe('order:7');
  });

  it('keeps the lock of a handler that runs when its client goes away', async () => {
    told.length = 0;
    const leaving = await connect(await app.getUrl());
    void leaving.refusal('slow', {});
    await until(() => told.length === 1);
    await leaving.close();
    await until(() => told.length === 2);
    expect(told).toEqual(['begun', 'held: true']);
  });

  it.each(['handler', 'stream'])('tells a client of a %s', async (event) => {
    expect(await client.refusal(event, 'busy')).toMatchObject({ code: 'LOCK_TIMEOUT' });
  });
});
