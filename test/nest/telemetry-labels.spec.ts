import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  Logger,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { lastValueFrom, of } from 'rxjs';
import { currentLease, DistributedLock, LockInterceptor, type LockKey, LockModule } from '../../lib/index.js';

const labelFor = (id: number) => Promise.resolve(id < 0 ? undefined : currentLease()?.label);

@Injectable()
class Orders {
  @DistributedLock('order:$<args[0]>')
  template(id: number): Promise<string | undefined> {
    return labelFor(id);
  }

  @DistributedLock(['a:$<args[0]>', 'b:$<args[0]>'])
  several(id: number): Promise<string | undefined> {
    return labelFor(id);
  }

  @DistributedLock((id: number) => `order:${String(id)}`)
  keyFunction(id: number): Promise<string | undefined> {
    return labelFor(id);
  }

  @DistributedLock('order:$<args[0]>', { label: 'order' })
  given(id: number): Promise<string | undefined> {
    return labelFor(id);
  }

  @DistributedLock('order:$<args[0]>', 'job')
  preset(id: number): Promise<string | undefined> {
    return labelFor(id);
  }

  @DistributedLock('order:$<args[0]>', () => ({ label: undefined, waitTime: 1 }))
  ofTheCall(id: number): Promise<string | undefined> {
    return labelFor(id);
  }
}

describe('the label of a lock', () => {
  let app: TestingModule | undefined;

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  const compile = async (...providers: Type[]) => {
    const module = Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory', presets: { job: { label: 'jobs' } } })],
      providers,
    });
    app = await module.setLogger(new Logger()).compile();
    await app.init();
    return app;
  };

  it.each([
    ['template', 'order:$<args[0]>'],
    ['several', 'a:$<args[0]>,b:$<args[0]>'],
    ['keyFunction', 'Orders.keyFunction'],
    ['given', 'order'],
    ['preset', 'jobs'],
    ['ofTheCall', 'order:$<args[0]>'],
  ] as const)('%s: %s', async (method, expected) => {
    const orders = (await compile(Orders)).get(Orders);
    await expect(orders[method](1)).resolves.toBe(expected);
  });

  it.each<[LockKey<[ExecutionContext]>, string]>([
    ['order:$<args[0]>', 'order:$<args[0]>'],
    [() => 'order:1', 'Shop.pay'],
  ])('is that of an interceptor with the key %p: %s', async (key, expected) => {
    const Interceptor = LockInterceptor(key);
    const app = await compile(Interceptor);
    class Shop {
      pay(): number {
        return 1;
      }
    }
    const context = {
      getType: () => 'rpc',
      getArgs: () => [1],
      getClass: () => Shop,
      getHandler: () => Shop.prototype.pay,
    } as unknown as ExecutionContext;
    const handler: CallHandler = { handle: () => of(currentLease()?.label) };
    const answer = app.get<NestInterceptor>(Interceptor).intercept(context, handler);
    await expect(lastValueFrom(await answer)).resolves.toBe(expected);
  });
});
