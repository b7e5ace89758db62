import { afterEach, beforeEach } from '@jest/globals';
import { Injectable, type Provider } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLock, type DistributedLockOptions, LockModule, LockService } from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

/** An application over a scripted store, with the classes that a test decorates as its providers. */
export class DecoratedApp {
  store = new ScriptedStore();
  entries = new Entries();
  module: TestingModule | undefined;

  /** Of each test by itself, and closed after it. */
  static ofEach(): DecoratedApp {
    const nest = new DecoratedApp();
    beforeEach(() => {
      nest.store = new ScriptedStore();
      nest.entries = new Entries();
    });
    afterEach(() => nest.close());
    return nest;
  }

  get locks(): LockService {
    if (this.module === undefined) throw new Error('The application is not started');
    return this.module.get(LockService);
  }

  async boot(...providers: Provider[]): Promise<TestingModule> {
    this.module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: this.store })],
      providers,
    }).compile();
    return this.module.init();
  }

  async make<T>(type: new () => T): Promise<T> {
    return (await this.boot(type as never)).get(type);
  }

  /** A service with one method under these options, which takes a moment. */
  async servedWith(options: DistributedLockOptions, run: () => unknown = () => this.entries.visit('done')) {
    @Injectable()
    class Jobs {
      @DistributedLock('job', options)
      async run(): Promise<unknown> {
        return run();
      }
    }
    return this.make(Jobs);
  }

  async close(): Promise<void> {
    await this.module?.close();
    this.module = undefined;
  }
}
