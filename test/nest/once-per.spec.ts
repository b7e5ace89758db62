import { Injectable, SetMetadata, type Type } from '@nestjs/common';
import { Interval, ScheduleModule } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  assertLocked,
  LockModule,
  LockService,
  type LockTimeoutError,
  MemoryLockStore,
  OncePer,
} from '../../lib/index.js';
import { passThroughLocks } from '../../lib/testing/index.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let store: MemoryLockStore;
let apps: TestingModule[];
let runs: string[];

@Injectable()
class Reports {
  readonly tenant = 'acme';

  @OncePer('daily', { period: '1h' })
  @SetMetadata('kept', true)
  async daily(): Promise<string | undefined> {
    assertLocked();
    runs.push('daily');
    await pass(10);
    return 'sent';
  }

  @OncePer('$<this.tenant>:$<args[0].id>', { period: '1h', retryAfterFailure: 50 })
  async of(order: { id: number }): Promise<void> {
    runs.push(`of ${String(order.id)}`);
    await pass(1);
    if (order.id < 0) throw new TypeError('no such order');
  }

  @OncePer((name: string) => Promise.resolve(`key:${name}`), { period: '1h' })
  async named(name: string): Promise<void> {
    runs.push(name);
    await Promise.resolve();
  }

  @OncePer('other', { period: '1h', instance: 'other' })
  async elsewhere(): Promise<void> {
    runs.push('elsewhere');
    await Promise.resolve();
  }

  @OncePer('$<args[0][*]>', { period: '1h' })
  async several(names: string[]): Promise<void> {
    await Promise.resolve(names);
  }
}

@Injectable()
class Schedule {
  @Interval(10)
  @OncePer('interval', { period: '1h' })
  async above(): Promise<void> {
    runs.push('above');
    await Promise.resolve();
  }

  @OncePer('interval:below', { period: '1h' })
  @Interval(10)
  async below(): Promise<void> {
    runs.push('below');
    await Promise.resolve();
  }
}

const boot = async (options = {}, provider: Type = Reports) => {
  const app = await Test.createTestingModule({
    imports: [
      ScheduleModule.forRoot(),
      LockModule.forRoot({ store, ...options }),
      LockModule.forRoot({ store: new MemoryLockStore(), name: 'other' }),
    ],
    providers: [provider],
  }).compile();
  apps.push(app);
  await app.init();
  return app;
};

beforeEach(() => {
  store = new MemoryLockStore();
  apps = [];
  runs = [];
});

afterEach(async () => {
  for (const app of apps) await app.close();
});

describe('@OncePer', () => {
  it('runs a method in one of several applications, and gives undefined elsewhere', async () => {
    const [a, b] = [(await boot()).get(Reports), (await boot()).get(Reports)];
    const answers = await Promise.all([a.daily(), b.daily(), a.daily(), b.daily()]);
    expect(answers.filter((answer) => answer === 'sent')).toHaveLength(1);
    expect(answers.filter((answer) => answer === undefined)).toHaveLength(3);
    expect(runs).toEqual(['daily']);
    expect(Reflect.getMetadata('kept', Reports.prototype.daily)).toBe(true);
    expect(Reports.prototype.daily.name).toBe('daily');
  });

  it('takes a template or a function as its key, and another instance', async () => {
    const app = await boot();
    const reports = app.get(Reports);
    for (const id of [1, 2, 1]) await reports.of({ id });
    for (const name of ['x', 'x', 'y']) await reports.named(name);
    await reports.elsewhere();
    await reports.elsewhere();
    expect(runs).toEqual(['of 1', 'of 2', 'x', 'y', 'elsewhere']);
    expect((await app.get(LockService).once('acme:1', { period: '1h' }, () => 0)).ran).toBe(false);
    await expect(reports.several(['a', 'b'])).rejects.toThrow(
      'takes one key, and its template names several',
    );
  });

  it('waits for its key as long as for a lock, and has the rest of its wait time for the call', async () => {
    class Late {
      @OncePer(() => new Promise<string>(() => undefined), { period: '1h' })
      async run(): Promise<void> {
        await Promise.resolve(runs.push('run'));
      }
      @OncePer(() => pass(30, 'later'), { period: '1h', waitTime: 50 })
      async busy(): Promise<void> {
        await Promise.resolve(runs.push('busy'));
      }
    }
    const app = await boot({ waitTime: 40 }, Late);
    await expect(app.get(Late).run()).rejects.toThrow('Late.run has given no key for 40 ms');
    const lease = await app.get(LockService).acquire('later');
    const error: unknown = await app
      .get(Late)
      .busy()
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect((error as LockTimeoutError).waited).toBeLessThan(50);
    expect(runs).toEqual([]);
    await lease.release();
  });

  it('passes the error of the method on, and lets the next call try', async () => {
    const reports = (await boot()).get(Reports);
    await expect(reports.of({ id: -1 })).rejects.toThrow(TypeError);
    const failed = performance.now();
    await expect(reports.of({ id: -1 })).rejects.toThrow(TypeError);
    expect(performance.now() - failed).toBeGreaterThan(45);
    expect(runs).toHaveLength(2);
  });

  it('stands above or below a schedule', async () => {
    await Promise.all([boot({}, Schedule), boot({}, Schedule)]);
    await pass(100);
    expect(runs.toSorted()).toEqual(['above', 'below']);
  });

  it('lets all calls through where locks pass through or are not enabled', async () => {
    const reports = (await boot({ enabled: false })).get(Reports);
    await reports.daily();
    await reports.daily();
    const restore = passThroughLocks();
    await new Reports().daily();
    restore();
    expect(runs).toEqual(['daily', 'daily', 'daily']);
    await expect(new Reports().daily()).rejects.toThrow('Nest has injected no LockService into this object');
  });

  it('refuses to run without its object, and says so', async () => {
    const { daily } = (await boot()).get<{ daily: () => Promise<unknown> }>(Reports);
    await expect(daily()).rejects.toThrow('@OncePer on Reports.daily: was called without its object');
    expect(runs).toEqual([]);
  });

  it.each([
    ['x', { period: 0 }, 'period: must be'],
    ['x', {}, 'period: must be'],
    ['x', { period: 1, every: 1 }, 'every: is not an option of the decorator'],
    ['x', { period: 1, instance: '' }, 'instance'],
    ['$<args[0', { period: 1 }, '$<args[0'],
    [7, { period: 1 }, 'key: must be a template or a function'],
    [['a', 'b'], { period: 1 }, 'key: must be a template or a function'],
  ])('refuses %j with %j where it is applied', (key, options, message) => {
    const apply = () => {
      class Wrong {
        async run(): Promise<void> {
          await Promise.resolve();
        }
      }
      const descriptor = Object.getOwnPropertyDescriptor(Wrong.prototype, 'run')!;
      OncePer(key as string, options as never)(Wrong.prototype, 'run', descriptor);
    };
    expect(apply).toThrow(message);
    expect(apply).toThrow('@OncePer on Wrong.run');
  });
});
