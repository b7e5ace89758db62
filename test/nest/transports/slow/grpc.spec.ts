import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { Controller, type INestMicroservice, UseInterceptors } from '@nestjs/common';
import { GrpcMethod, Transport } from '@nestjs/microservices';
import { fileURLToPath } from 'node:url';
import { from } from 'rxjs';
import { currentLease, LockInterceptor } from '../../../../lib/index.js';
import { freePort } from '../free-port.js';
import {
  Busy,
  ErrorLog,
  type Failure,
  FAILURES,
  Invalid,
  secretsOf,
  Shop,
  openMicroservice,
} from '../shop.js';

const protoPath = fileURLToPath(new URL('../shop.proto', import.meta.url));

interface Order {
  readonly name: Exclude<Failure['name'], 'invalid'>;
}

@Controller()
class Orders {
  constructor(private readonly shop: Shop) {}

  @GrpcMethod('Orders', 'Fail')
  async fail({ name }: Order) {
    return { text: await this.shop.fail(name) };
  }

  @GrpcMethod('Orders', 'Feed')
  feed({ name }: Order) {
    return from(this.fail({ name }));
  }

  @GrpcMethod('Orders', 'Invalid')
  @UseInterceptors(Invalid())
  invalid() {
    return { text: 'not refused' };
  }

  @GrpcMethod('Orders', 'Keyed')
  @UseInterceptors(LockInterceptor('order:$<args[0].name>'))
  keyed() {
    return { text: currentLease()?.name };
  }

  @Busy()
  @GrpcMethod('Orders', 'Handler')
  async handler() {
    return Promise.resolve({ text: 'not refused' });
  }
}

type Callback = (error: grpc.ServiceError | null, answer: unknown) => void;
type OrdersClient = grpc.Client &
  Record<'Fail' | 'Invalid' | 'Keyed' | 'Handler', (order: object, callback: Callback) => void> & {
    Feed(order: object): grpc.ClientReadableStream<unknown>;
  };

describe('gRPC', () => {
  let app: INestMicroservice;
  let client: OrdersClient;
  const log = ErrorLog.ofEach();

  beforeAll(async () => {
    const url = `127.0.0.1:${String(await freePort())}`;
    const options = { package: 'shop', protoPath, url };
    app = await openMicroservice({ controllers: [Orders] }, { transport: Transport.GRPC, options }, log);
    const { shop } = grpc.loadPackageDefinition(loadSync(protoPath)) as unknown as {
      shop: { Orders: new (url: string, credentials: grpc.ChannelCredentials) => OrdersClient };
    };
    client = new shop.Orders(url, grpc.credentials.createInsecure());
  });

  afterAll(async () => {
    client.close();
    await app.close();
  });

  const refusal = (method: 'Fail' | 'Invalid' | 'Handler', name: string): Promise<grpc.ServiceError> =>
    new Promise((resolve, reject) => {
      client[method]({ name }, (error) => {
        if (error === null) reject(new Error('not refused'));
        else resolve(error);
      });
    });

  it.each(FAILURES)('tells a client: $name', async ({ name, grpc: code, message, isLogged }) => {
    const error = await refusal(name === 'invalid' ? 'Invalid' : 'Fail', name);
    expect([error.code, error.details]).toEqual([code, message]);
    const sent = JSON.stringify([error.details, error.metadata.getMap()]);
    for (const secret of secretsOf(app)) expect(sent).not.toContain(secret);
    expect(log.errors).toHaveLength(isLogged ? 1 : 0);
  });

  it('locks a handler by its request', async () => {
    const answer = await new Promise((resolve) => {
      client.Keyed({ name: 'seven' }, (_, given) => {
        resolve(given);
      });
    });
    expect(answer).toEqual({ text: 'order:seven' });
  });

  it('tells a client of a handler', async () => {
    expect((await refusal('Handler', '')).code).toBe(grpc.status.RESOURCE_EXHAUSTED);
  });

  it('tells the reader of a stream', async () => {
    const error = await new Promise<unknown>((resolve) => {
      client.Feed({ name: 'busy' }).on('error', resolve).resume();
    });
    expect(error).toMatchObject({ code: grpc.status.RESOURCE_EXHAUSTED });
  });
});
