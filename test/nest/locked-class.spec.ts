import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, UseInterceptors } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { lastValueFrom, Observable, of } from 'rxjs';
import { runInThisContext } from 'node:vm';
import { transformSync } from '@swc/core';
import ts from 'typescript';
import {
  assertLocked,
  currentLease,
  DistributedLock,
  InjectLockService,
  LockInterceptor,
  OncePer,
  OnLeader,
  OnlyLeader,
} from '../../lib/index.js';
import { DecoratedApp } from './decorated-app.js';

const nest = DecoratedApp.ofEach();

const held = () => currentLease()?.name;

class Base {
  async inherited(): Promise<string | undefined> {
    return Promise.resolve(held());
  }
}

const Noted = (): MethodDecorator => () => undefined;

@Injectable()
@DistributedLock('jobs:$<class>.$<method>')
class Jobs extends Base {
  started: string | undefined = 'not yet';

  async onModuleInit(): Promise<void> {
    this.started = held();
    return Promise.resolve();
  }

  async nightly(): Promise<string | undefined> {
    assertLocked('jobs:Jobs.nightly');
    return nest.entries.visit(held());
  }

  @Noted()
  stream(): Observable<string | undefined> {
    return new Observable((subscriber) => {
      subscriber.next(held());
      subscriber.complete();
    });
  }

  @DistributedLock('own')
  async own(): Promise<string | undefined> {
    return Promise.resolve(held());
  }

  @OncePer('once', { period: '1h' })
  @DistributedLock('own')
  async wrapped(): Promise<string[] | undefined> {
    return Promise.resolve(nest.locks.leases().map(({ name }) => name));
  }

  get name(): string {
    return this.#format('name');
  }

  #format(text: string): string {
    return text;
  }
}

describe('a locked class', () => {
  it('locks each of its own methods, and no hook of Nest', async () => {
    const jobs = await nest.make(Jobs);
    expect(jobs.started).toBeUndefined();
    expect(await Promise.all([jobs.nightly(), jobs.nightly()])).toEqual(Array(2).fill('jobs:Jobs.nightly'));
    expect(nest.entries.most).toBe(1);
    expect(await lastValueFrom(jobs.stream())).toBe('jobs:Jobs.stream');
    expect(await jobs.own()).toBe('own');
    expect(await jobs.wrapped()).toEqual(['once', 'own']);
    expect(await jobs.inherited()).toBeUndefined();
    expect(jobs.name).toBe('name');
  });

  it('is refused where a method may be sync', () => {
    expect(() => {
      @DistributedLock('a')
      class Sync {
        run() {
          return Promise.resolve(1);
        }
      }
      return Sync;
    }).toThrow(/@DistributedLock on Sync\.run: would lock a method that may be sync/);
  });
});

describe('a standard (TC39) decorator', () => {
  const compiledBy: [string, (source: string) => string][] = [
    ['TypeScript', (source) => ts.transpile(source, { target: ts.ScriptTarget.ES2022 })],
    [
      'SWC',
      (source) =>
        transformSync(source, {
          configFile: false,
          swcrc: false,
          jsc: {
            target: 'es2022',
            parser: { syntax: 'typescript', decorators: true },
            transform: { decoratorVersion: '2022-03' },
          },
        }).code,
    ],
  ];
  const decorators = { DistributedLock, InjectLockService, OnLeader, OnlyLeader };

  describe.each(compiledBy)('of %s', (_, compile) => {
    it.each([
      ['DistributedLock', 'pay', "class Orders { @DistributedLock('a') async pay() {} }"],
      ['DistributedLock', '#pay', "class Orders { @DistributedLock('a') async #pay() {} }"],
      ['DistributedLock', 'pay', "class Orders { @DistributedLock('a') pay = async () => {} }"],
      ['DistributedLock', 'Orders', "@DistributedLock('a') class Orders { async pay() {} }"],
      [
        'DistributedLock',
        'a class without a name',
        "(class { static { DistributedLock('a')(this, { kind: 'class' }) } })",
      ],
      ['InjectLockService', 'locks', 'class Orders { @InjectLockService() locks }'],
      ['OnLeader', 'pay', "class Orders { @OnLeader('a') async pay() {} }"],
      ['OnlyLeader', 'pay', "class Orders { @OnlyLeader('a') async pay() {} }"],
    ])('is refused by that name: @%s on %s', (decorator, name, source) => {
      const code = compile(`(({ ${decorator} }) => { ${source} })`);
      const run = runInThisContext(code) as (all: typeof decorators) => void;
      expect(() => {
        run(decorators);
      }).toThrow(
        `@${decorator} on ${name}: has been called as a standard (TC39) decorator. Nest needs the other ones: set ` +
          'experimentalDecorators',
      );
    });
  });
});

it('an interceptor without a module is named in the error of the boot', async () => {
  @Controller()
  @UseInterceptors(LockInterceptor('cart:$<req.params.id>'))
  class Carts {
    @Get()
    get() {
      return of(1);
    }
  }
  const booting = Test.createTestingModule({ controllers: [Carts] }).compile();
  await expect(booting).rejects.toThrow(/LockInterceptor\("cart:\$<req\.params\.id>"\)/);
});
