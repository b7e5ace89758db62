import { describe, expect, it } from '@jest/globals';
import { nearest } from '../../lib/runtime/nearest.js';
import {
  ACQUIRE_OPTIONS,
  assertKnownOptions,
  assertMaxWaiting,
  assertName,
  assertOwnOptions,
  leaseTimeOf,
  MAX_LABEL,
  MAX_NAME_BYTES,
  reasonOf,
  resolveAcquireOptions,
  signalOf,
} from '../../lib/client/validation.js';
import { MAX_REASON } from '../../lib/api/asker.js';
import { RESERVED } from '../../lib/store/lock-store.js';

describe('the name of a lock', () => {
  it.each(['a', 'é'.repeat(MAX_NAME_BYTES / 2), 'a'.repeat(MAX_NAME_BYTES)])('may be long: %#', (name) => {
    expect(() => {
      assertName(name);
    }).not.toThrow();
  });

  it.each([
    [5, 'must be a string (found: 5)'],
    [undefined, 'must be a string (found: undefined)'],
    ['', 'must not be empty'],
    ['a'.repeat(MAX_NAME_BYTES + 1), `must have at most ${String(MAX_NAME_BYTES)} bytes (found: 1025`],
    ['é'.repeat(MAX_NAME_BYTES / 2) + 'a', 'at most 1024 bytes (found: 1025'],
    ['a\ud800', 'must be well-formed Unicode'],
    [`a${RESERVED}b`, `must not contain "${RESERVED}"`],
  ])('is refused: %#', (name, rule) => {
    const check = () => {
      assertName(name);
    };
    expect(check).toThrow(rule);
    expect(check).toThrow(expect.objectContaining({ code: 'LOCK_KEY' }));
  });
});

describe('a lease time', () => {
  it('has to leave something after the allowance for the drift of clocks', () => {
    expect(leaseTimeOf(3)).toBe(3);
    expect(leaseTimeOf('1s')).toBe(1_000);
    expect(() => leaseTimeOf(2)).toThrow('leaseTime: must be longer than the allowance for clock drift');
    expect(() => leaseTimeOf(0, 'retention')).toThrow('retention: must be a whole number');
    expect(() => leaseTimeOf(Infinity)).toThrow('leaseTime: must be a whole number');
  });
});

describe('options', () => {
  it.each([null, undefined, 5, 'text', [], () => 1])('are an object, and not %p', (options) => {
    expect(() => {
      assertKnownOptions(options, ['signal'], 'acquire');
    }).toThrow('options: must be an object');
  });

  it('that are not known are refused, with the one that is probably meant', () => {
    const check = (option: string) => () => {
      assertKnownOptions({ signal: undefined, [option]: 1 }, ['signal', 'waitTime'], 'acquire');
    };
    expect(check('waitTime')).not.toThrow();
    expect(check('waittime')).toThrow(
      'waittime: is not an option of acquire, did you mean waitTime? There are signal, waitTime',
    );
    expect(check('priority')).toThrow('priority: is not an option of acquire; there are signal, waitTime');
  });

  it('that are spread would lose what they inherit, so that is refused', () => {
    const check = (options: object) => () => {
      assertOwnOptions(options, ACQUIRE_OPTIONS);
    };
    class Computed {
      get waitTime() {
        return Number('5');
      }
    }
    class Plain {
      readonly waitTime = 5;
    }
    for (const options of [{}, { waitTime: 5 }, Object.create(null) as object, new Plain()]) {
      expect(check(options)).not.toThrow();
    }
    expect(check(Object.create({ toJSON: 1 }) as object)).not.toThrow();
    expect(check(new Map([['waitTime', 5]]))).toThrow('options: must be a plain object');
    expect(check(new Computed())).toThrow('waitTime: must be a property of the options themselves');
  });

  it('of an acquisition are resolved, and what is absent stays absent', () => {
    expect(resolveAcquireOptions({})).toEqual({});
    const { signal } = new AbortController();
    const given = {
      waitTime: '2s',
      leaseTime: '1m',
      minHoldTime: 500,
      renew: true,
      failFast: false,
    } as const;
    expect(resolveAcquireOptions({ ...given, signal, maxWaiting: 3, label: 'stock' })).toEqual({
      waitTime: 2_000,
      leaseTime: 60_000,
      minHoldTime: 500,
      renew: true,
      failFast: false,
      signal,
      maxWaiting: 3,
      label: 'stock',
    });
    expect(resolveAcquireOptions({ waitTime: Infinity }).waitTime).toBe(Infinity);
  });

  it.each([
    [{ waitTime: -1 }, 'waitTime: must be a whole number of milliseconds from 0 to'],
    [{ minHoldTime: Infinity }, 'minHoldTime: must be a whole number of milliseconds'],
    [{ renew: 'yes' }, 'renew: must be true or false'],
    [{ failFast: 1 }, 'failFast: must be true or false'],
    [{ signal: {} }, 'signal: must be an AbortSignal'],
    [{ maxWaiting: 0 }, 'maxWaiting: must be a whole number from 1 on, or Infinity'],
    [{ label: '' }, 'label: must be a text of 1 to 1024 characters'],
    [{ label: 5 }, 'label: must be a text'],
    [{ label: 'a'.repeat(MAX_LABEL + 1) }, 'label: must be a text'],
  ])('of an acquisition are refused by name: %#', (options, rule) => {
    expect(() => resolveAcquireOptions(options as object)).toThrow(rule);
  });

  it('may have a label as long as the rule says', () => {
    const label = 'a'.repeat(MAX_LABEL);
    expect(resolveAcquireOptions({ label }).label).toBe(label);
  });

  it('have a minHoldTime within the lease', () => {
    const resolve = (options: object, maxHoldTime?: number) => () =>
      resolveAcquireOptions(options, maxHoldTime);
    for (const fits of [
      resolve({ minHoldTime: 5_000, leaseTime: 5_000 }),
      resolve({ minHoldTime: 5_000 }, 5_000),
      resolve({ minHoldTime: 5_000 }),
      resolve({ minHoldTime: 5_000, leaseTime: 1_000, renew: true }, 5_000),
      resolve({ leaseTime: 1_000 }, 500),
    ])
      expect(fits).not.toThrow();
    const beyondFixed = 'minHoldTime: must not be longer than the fixed lease of 5000 ms';
    const beyondMost = 'minHoldTime: must not be longer than maxHoldTime, 5000 ms';
    expect(resolve({ minHoldTime: 5_001, leaseTime: 5_000 })).toThrow(beyondFixed);
    expect(resolve({ minHoldTime: 5_001, leaseTime: 5_000, renew: false }, 9_000)).toThrow(beyondFixed);
    expect(resolve({ minHoldTime: 5_001 }, 5_000)).toThrow(beyondMost);
    expect(resolve({ minHoldTime: 5_001, leaseTime: 9_000, renew: true }, 5_000)).toThrow(beyondMost);
  });

  it.each([1, 2, Infinity])('may have maxWaiting %p', (value) => {
    expect(() => {
      assertMaxWaiting(value);
    }).not.toThrow();
  });

  it('of a call that takes a signal only have no other', () => {
    const { signal } = new AbortController();
    expect(signalOf(undefined, 'isLocked')).toBeUndefined();
    expect(signalOf({ signal }, 'isLocked')).toBe(signal);
    const other = { reason: 'x' } as object;
    expect(() => signalOf(other, 'isLocked')).toThrow('reason: is not an option of isLocked');
    expect(() => signalOf({ signal: 5 } as object, 'isLocked')).toThrow('signal: must be an AbortSignal');
  });

  it('may give a reason, which is a text that says something', () => {
    const longest = 'a'.repeat(MAX_REASON);
    expect(reasonOf(undefined, 'forceRelease')).toBeUndefined();
    expect(reasonOf({ reason: undefined }, 'forceRelease')).toBeUndefined();
    for (const reason of ['deploy', longest]) expect(reasonOf({ reason }, 'forceRelease')).toBe(reason);
    for (const reason of ['', ' \n', `${longest}a`, 5, null]) {
      expect(() => reasonOf({ reason } as object, 'forceRelease')).toThrow(
        'reason: must be a text of 1 to 1000',
      );
    }
    expect(() => reasonOf({ reasons: 'x' } as object, 'forceRelease')).toThrow('did you mean reason?');
  });
});

describe('the name that was probably meant', () => {
  const known = ['waitTime', 'leaseTime', 'renew', 'signal', 'minHoldTime'];

  it.each([
    ['waitTme', 'waitTime'],
    ['WAITTIME', 'waitTime'],
    ['lesaeTime', 'leaseTime'],
    ['rnew', 'renew'],
    ['rnw', 'renew'],
    ['ren', 'renew'],
    ['renewal', 'renew'],
    ['renewAutomatically', 'renew'],
    ['sig', 'signal'],
    ['minHold', 'minHoldTime'],
  ])('%s is %s', (given, meant) => {
    expect(nearest(given, known)).toBe(meant);
  });

  it.each(['re', 'xyz', 'rxxxw', 'timeout'])('%s is none', (given) => {
    expect(nearest(given, known)).toBeUndefined();
  });

  it('is the nearest where several are near, whatever their order', () => {
    for (const names of [
      ['leaseTimes', 'leaseTime'],
      ['leaseTime', 'leaseTimes'],
    ]) {
      expect(nearest('leaseTim', names)).toBe('leaseTime');
      expect(nearest('leaseTimess', names)).toBe('leaseTimes');
    }
  });
});
