import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { DistributedLock } from '../../lib/index.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

describe('refused where it is applied', () => {
  const apply = (key: unknown, options?: unknown) => () => {
    class Jobs {
      @DistributedLock(key as string, options as never)
      async run(): Promise<void> {
        await pass(1);
      }
    }
    return Jobs;
  };

  it.each<[string, unknown, unknown, RegExp]>([
    ['a malformed template', 'a:$<args', undefined, /Jobs\.run.*"a:\$<args".*position/],
    ['no key', undefined, undefined, /Jobs\.run.*template/],
    ['an empty array', [], undefined, /empty/],
    ['an unknown kind', 'a', { kind: 'mutex' }, /kind.*"mutex"/],
    ['a wrong onBusy', 'a', { onBusy: 'wait' }, /onBusy.*"wait"/],
    ['a wrong onLost', 'a', { onLost: 'ignore' }, /onLost/],
    ['a preset that is no name', 'a', { preset: 5 }, /preset: must be the name.*5/],
    ['a wrong returns', 'a', { returns: 'stream' }, /returns/],
    ['a negative minHoldTime', 'a', { minHoldTime: -1 }, /minHoldTime.*-1/],
    [
      'a minHoldTime longer than the fixed lease',
      'a',
      { leaseTime: 500, minHoldTime: 501 },
      /minHoldTime: must not be longer than the fixed lease of 500 ms.*501/,
    ],
    ['a NaN waitTime', 'a', { waitTime: NaN }, /waitTime.*NaN/],
    ['a leaseTime of 0', 'a', { leaseTime: 0 }, /leaseTime.*0/],
    ['an empty instance', 'a', { instance: '' }, /Jobs\.run: instance: must/],
    ['an option that does not exist', 'a', { waitTme: 5 }, /waitTme/],
    ['null for the options', 'a', null, /Jobs\.run.*options.*null/],
    ['a number for the options', 'a', 5_000, /Jobs\.run.*options.*5000/],
    ['an array for the options', 'a', [], /Jobs\.run.*options.*must be an object \(found: an array/],
  ])('%s', (_, key, options, message) => {
    expect(apply(key, options)).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
    expect(apply(key, options)).toThrow(message);
  });

  it('a static method', () => {
    expect(() => {
      class Jobs {
        readonly field = 1;
        @DistributedLock('a')
        static async run(): Promise<void> {
          await pass(1);
        }
      }
      return Jobs;
    }).toThrow(/Jobs\.run.*static/);
  });

  it('a class with an async static method, which would run unlocked', () => {
    expect(() => {
      @DistributedLock('a')
      class Jobs {
        static async nightly(): Promise<void> {
          await pass(1);
        }
        static of(): Jobs {
          return new Jobs();
        }
        async run(): Promise<void> {
          await pass(1);
        }
      }
      return Jobs;
    }).toThrow('@DistributedLock on Jobs.nightly: cannot lock a static method');
  });

  it('a class with the decorator twice, of which one would lock nothing, but not its subclass', () => {
    @DistributedLock('a')
    class Jobs {
      async run(): Promise<void> {
        await pass(1);
      }
    }
    @DistributedLock('b')
    class More extends Jobs {
      async more(): Promise<void> {
        await pass(1);
      }
    }
    expect(() => {
      DistributedLock('c')(More);
    }).toThrow('@DistributedLock on More: is there twice');
  });

  it.each([
    [
      'an async generator',
      async function* () {
        yield pass(1);
      },
    ],
    [
      'a generator',
      function* () {
        yield 1;
      },
    ],
  ])('%s, which runs after its call has ended', (_, value) => {
    const decorate = DistributedLock('a') as (target: object, property: string, descriptor?: object) => void;
    expect(() => {
      decorate({}, 'rows', { value });
    }).toThrow(/rows.*generator/);
  });

  it('a class without a method', () => {
    expect(() => {
      @DistributedLock('a')
      class Jobs {
        readonly field = 1;
      }
      return Jobs;
    }).toThrow('@DistributedLock on Jobs: finds no method in the class');
  });

  it('something that is no method', () => {
    const decorate = DistributedLock('a') as (target: object, property: string, descriptor?: object) => void;
    expect(() => {
      decorate({}, 'field');
    }).toThrow(/method/);
    expect(() => {
      decorate({}, 'getter', { get: () => 1 });
    }).toThrow(/method/);
  });
});
