import { runInThisContext } from 'node:vm';
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
import 'reflect-metadata';
import { lastValueFrom, of } from 'rxjs';
import { currentLease, DistributedLock, LockInterceptor, type LockKey, LockModule } from '../../lib/index.js';
import { DecoratedApp } from './decorated-app.js';

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

describe('$<class> in a key, of classes that a bundler has written (pitfall 82)', () => {
  const nest = DecoratedApp.ofEach();
  /** A class as the text of a bundle has it, with `$<class>` in the key of its method. */
  const inBundle = (text: string, key = '$<class>.run'): Type => {
    const type = runInThisContext(`(${text})`) as Type;
    const descriptor = Object.getOwnPropertyDescriptor(type.prototype, 'run') ?? {};
    DistributedLock(key)(type.prototype as object, 'run', descriptor as never);
    Object.defineProperty(type.prototype, 'run', descriptor);
    Injectable()(type);
    return type;
  };

  it.each([
    ['webpack', 'class Orders { async run() {} }', 'class billing_Orders { async run() {} }'],
    [
      'webpack, in the next build',
      'class ordering_Orders { async run() {} }',
      'class Orders { async run() {} }',
    ],
  ])('is refused if %s may have renamed one of two', async (_, one, two) => {
    await expect(nest.boot(inBundle(one), inBundle(two))).rejects.toThrow(
      /there are the classes "\w+" and "\w+", which a bundler may have made of one name/,
    );
  });

  it.each([
    ['mixin() of Nest', 'class { async run() {} }', '0123456789abcdef01234'],
    ['Rollup, of two classes with one name', 'class Orders$1 { async run() {} }', 'Orders$1'],
  ])('is refused if %s has made the name, and a label of it, too', async (_, text, value) => {
    const named = (key?: string) => Object.defineProperty(inBundle(text, key), 'name', { value });
    await expect(nest.boot(named())).rejects.toThrow('is no name that the class was written with');
    await expect(nest.boot(named((() => 'a') as never))).rejects.toThrow('has a key function and no label');
  });

  it('is accepted of classes whose names only end with one word', async () => {
    const types = ['Sales', 'Billing'].map((name) => inBundle(`class ${name}_Orders { async run() {} }`));
    await nest.boot(...(types as [Type]));
  });
});
