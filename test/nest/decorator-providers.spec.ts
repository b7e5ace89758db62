import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Injectable, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { assertLocked, DistributedLock, LockModule } from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { DecoratedApp } from './decorated-app.js';

const nest = DecoratedApp.ofEach();

describe('wherever Nest makes the object', () => {
  @Injectable()
  class Plain {
    @DistributedLock('a')
    async run(): Promise<void> {
      await nest.entries.visit(undefined);
    }
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class Transient extends Plain {}
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest extends Plain {}
  @Injectable()
  class Frozen extends Plain {
    constructor() {
      super();
      Object.freeze(this);
    }
  }

  it.each([
    ['singleton', Plain],
    ['transient', Transient],
    ['request-scoped', PerRequest],
    ['frozen by its constructor', Frozen],
  ])('%s', async (_, type) => {
    const module = await nest.boot(type);
    const instances = await Promise.all(
      [1, 2, 3].map(() => module.resolve(type).catch(() => module.get(type))),
    );
    await Promise.all(instances.map((instance) => instance.run()));
    expect(nest.entries.total).toBe(3);
    expect(nest.entries.most).toBe(1);
  });

  it('in two applications of one process, each with its own service', async () => {
    const build = (own: ScriptedStore) =>
      Test.createTestingModule({
        imports: [LockModule.forRoot({ store: own })],
        providers: [Plain],
      }).compile();
    const [first, second] = [new ScriptedStore(), new ScriptedStore()];
    const [one, two] = await Promise.all([build(first), build(second)]);
    await one.get(Plain).run();
    expect([first.calls.acquire, second.calls.acquire]).toEqual([1, 0]);
    await two.get(Plain).run();
    expect([first.calls.acquire, second.calls.acquire]).toEqual([1, 1]);
    await one.close();
    await two.get(Plain).run();
    await two.close();
  });

  it('fails the boot without LockModule, and names class, decorator and cure', async () => {
    const booting = Test.createTestingModule({ providers: [Plain] }).compile();
    await expect(booting).rejects.toThrow(/Plain.*@DistributedLock.*import LockModule\.forRoot/s);
  });

  it('refuses to run on an object that Nest has not made', async () => {
    const error = await new Plain().run().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'LOCK_CONFIG' });
    expect((error as Error).message).toMatch(/Plain\.run.*@DistributedLock/);
    expect(nest.entries.total).toBe(0);
  });

  it('refuses to run without an object, and says so', async () => {
    const { run } = await nest.make(Plain);
    const error = await (run as () => Promise<unknown>)().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'LOCK_CONFIG' });
    expect((error as Error).message).toMatch(/Plain\.run.*without its object/);
    expect(nest.entries.total).toBe(0);
  });
});

describe('in class hierarchies', () => {
  abstract class Base<T> {
    @DistributedLock('shared')
    async run(value: T): Promise<T> {
      return this.work(value);
    }
    protected abstract work(value: T): Promise<T>;
  }

  @Injectable()
  class Child extends Base<number> {
    protected work(value: number) {
      return nest.entries.visit(value);
    }
  }

  @Injectable()
  class Overriding extends Base<number> {
    @DistributedLock('own')
    override async run(value: number): Promise<number> {
      return (await super.run(value)) + 1;
    }
    protected work(value: number) {
      assertLocked('own');
      assertLocked('shared');
      return nest.entries.visit(value);
    }
  }

  it('a method is inherited with its lock, from an abstract generic class', async () => {
    const child = await nest.make(Child);
    expect(await Promise.all([child.run(1), child.run(2)])).toEqual([1, 2]);
    expect(nest.entries.most).toBe(1);
  });

  it('an override has its own lock, and super keeps its', async () => {
    const overriding = await nest.make(Overriding);
    expect(await Promise.all([overriding.run(1), overriding.run(2)])).toEqual([2, 3]);
    expect(nest.entries.most).toBe(1);
  });
});
