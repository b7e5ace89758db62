import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, type INestMicroservice, Injectable, UseInterceptors } from '@nestjs/common';
import {
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { from, lastValueFrom } from 'rxjs';
import { currentLease, LockInterceptor } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { freePort } from './free-port.js';
import {
  Busy,
  ErrorLog,
  type Failure,
  FAILURES,
  Invalid,
  secretsOf,
  Shop,
  openMicroservice,
} from './shop.js';

@Injectable()
class Events {
  constructor(protected readonly shop: Shop) {}

  @EventPattern('event')
  async event(@Payload() name: Exclude<Failure['name'], 'invalid'>) {
    await this.shop.fail(name);
  }
}

@Controller()
class Orders extends Events {
  @MessagePattern('fail')
  fail(@Payload() name: Exclude<Failure['name'], 'invalid'>) {
    return this.shop.fail(name);
  }

  @MessagePattern('stream')
  stream(@Payload() name: Exclude<Failure['name'], 'invalid'>) {
    return from(this.shop.fail(name));
  }

  @MessagePattern('invalid')
  @UseInterceptors(Invalid())
  invalid() {
    return 'not refused';
  }

  @MessagePattern('keyed')
  @UseInterceptors(LockInterceptor('order:$<args[0].id>'))
  keyed() {
    return currentLease()?.name;
  }

  @Busy()
  @MessagePattern('handler')
  async handler() {
    return Promise.resolve('not refused');
  }
}

@Controller()
@UseInterceptors(LockInterceptor('order:4711', { waitTime: 0 }))
class Intercepted {
  @EventPattern('intercepted')
  event(@Payload() name: string) {
    return name;
  }

  @UseInterceptors(LockInterceptor('order:4711', { waitTime: 0 }))
  @EventPattern('twice')
  twice(@Payload() name: string) {
    return name;
  }

  @MessagePattern('asked')
  asked() {
    return 'not refused';
  }
}

const clientOptions = (url: string) => {
  const { hostname: host, port, username, password } = new URL(url);
  return { host, port: Number(port), username, password };
};

describe.each([['TCP'], ['Redis']])('a %s microservice', (transport) => {
  let redis: TestRedis | undefined;
  let app: INestMicroservice;
  let client: ClientProxy;
  const log = ErrorLog.ofEach();

  beforeAll(async () => {
    redis = transport === 'Redis' ? await startRedis() : undefined;
    const broker =
      redis === undefined
        ? ({ transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } } as const)
        : ({ transport: Transport.REDIS, options: clientOptions(redis.url) } as const);
    app = await openMicroservice({ controllers: [Orders, Intercepted] }, broker, log);
    client = ClientProxyFactory.create(broker);
    await client.connect();
  });

  afterAll(async () => {
    await client.close();
    await app.close();
    await redis?.stop();
  });

  const refusal = (pattern: string, name: string): Promise<unknown> =>
    lastValueFrom(client.send<unknown>(pattern, name)).then(
      (answer) => ({ answer }),
      (error: unknown) => error,
    );

  it.each(FAILURES)('tells a client: $name', async ({ name, code, message, isLogged }) => {
    const error = await refusal(name === 'invalid' ? name : 'fail', name);
    expect(error).toEqual({ status: 'error', code, message });
    for (const secret of secretsOf(app)) expect(JSON.stringify(error)).not.toContain(secret);
    expect(log.errors).toHaveLength(isLogged ? 1 : 0);
  });

  it.each([
    ['busy', /The lock "order:4711" is busy(?: after a wait of \d+ ms)?: held by /],
    ['closed', /The service is shutting down/],
  ])('logs an event that has not been handled: %s', async (name, message) => {
    await lastValueFrom(client.emit('event', name), { defaultValue: undefined });
    await until(() => log.warnings.length > 0);
    expect(log.warnings).toEqual([
      expect.stringMatching(new RegExp(`Orders.event has not handled its event: ${message.source}`)),
    ]);
    expect(log.errors).toEqual([]);
  });

  it('logs an event that an interceptor of the class has refused, and no message, which has an answer', async () => {
    expect(await refusal('asked', '')).toMatchObject({ code: 'LOCK_TIMEOUT' });
    for (const pattern of ['intercepted', 'twice'])
      await lastValueFrom(client.emit(pattern, ''), { defaultValue: undefined });
    await until(() => log.warnings.length > 1);
    expect(log.warnings).toEqual(
      ['event', 'twice'].map((name) =>
        expect.stringContaining(`Intercepted.${name} has not handled its event: `),
      ),
    );
  });

  it('logs an event that has failed once', async () => {
    await lastValueFrom(client.emit('event', 'lost'), { defaultValue: undefined });
    await until(() => log.errors.length > 0);
    expect([log.errors.length, log.warnings]).toEqual([1, []]);
  });

  it('locks a handler by its payload', async () => {
    expect(await lastValueFrom(client.send<string>('keyed', { id: 7 }))).toBe('order:7');
  });

  it.each(['handler', 'stream'])('tells a client of a %s', async (pattern) => {
    expect(await refusal(pattern, 'busy')).toMatchObject({ status: 'error', code: 'LOCK_TIMEOUT' });
  });
});
