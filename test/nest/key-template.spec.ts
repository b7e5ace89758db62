import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { isLockConfigError, isLockKeyError } from '../../lib/index.js';
import { compileKey, type LockKey } from '../../lib/nest/lock-key.js';
import { times } from '../support/tier.js';

const ROOTS = ['args', 'this', 'class', 'method'];

const keysOf = (key: LockKey<never[]>, args: unknown[] = [], self: object = {}) =>
  compileKey(
    key,
    ROOTS,
  )({
    roots: { args, this: self, class: 'Orders', method: 'pay' },
    args: args as never[],
  });

function refusal(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}

describe('a key template', () => {
  it.each<[string, unknown[], string[]]>([
    ['nightly', [], ['nightly']],
    ['order:$<args[0]>', ['7'], ['order:7']],
    ['order:$<args[0]>', [7], ['order:7']],
    ['order:$<args[0]>', [0], ['order:0']],
    ['order:$<args[0]>', [10n], ['order:10']],
    ['flag:$<args[0]>', [false], ['flag:false']],
    ['$<args[0].user.id>/$<args[1]>', [{ user: { id: 3 } }, 'x'], ['3/x']],
    ['$<args[0]["first name"]>', [{ 'first name': 'Ada' }], ['Ada']],
    ['$<args[0]["a\\"b"]>', [{ 'a"b': 'q' }], ['q']],
    ['$<args[0][1][0]>', [[[1], [2]]], ['2']],
    ['$<class>.$<method>', [], ['Orders.pay']],
    ['$<this.tenant>:x', [], ['acme:x']],
    ['order:$<args[0][*].id>', [[{ id: 2 }, { id: 1 }, { id: 2 }]], ['order:1', 'order:2']],
    ['$<args[*]>', ['b', 'a'], ['a', 'b']],
    [
      '$<args[0][*]>-$<args[1][*]>',
      [
        ['a', 'b'],
        [1, 2],
      ],
      ['a-1', 'a-2', 'b-1', 'b-2'],
    ],
    ['$$<args[0]>', [], ['$<args[0]>']],
    ['$$$<args[0]>', [], ['$$<args[0]>']],
    ['cost: 5$ > 4€', [], ['cost: 5$ > 4€']],
    ['$$<req.body>', [], ['$<req.body>']],
  ])('%s', (template, args, keys) => {
    expect(keysOf(template, args, { tenant: 'acme' })).toEqual(keys);
  });

  it.each([
    ['order:${args[0]}', '${'],
    ['order:$args[0]', '$args'],
    ['$id', '$id'],
    ['order:{{id}}', '{{'],
    ['#{#id}', '#{'],
    ['order:#order.id', '#order'],
    ['order:<args[0]>', '<args'],
    ['order:{args[0]}', '{args'],
    ['order:<req.params.id>', '<req'],
    ['order:$(args[0].id)', 'args['],
    ['order:args[0].id', 'args['],
    ['order:[req.params.id]', 'req.params'],
  ])('refuses %s, and names what it takes for a value of another language', (template, foreign) => {
    const error = refusal(() => keysOf(template, ['1']));
    expect(isLockConfigError(error)).toBe(true);
    expect((error as Error).message).toContain(
      `malformed at position ${String(template.indexOf(foreign))}: ${foreign} is no value here`,
    );
    expect(keysOf(() => template, ['1'])).toEqual([template]);
  });

  it.each(['a < b', 'a{classy}', 'ticket#5', 'order:%s', 'order::id', 'req.id', '5$', '$', '#', '{', 'a$ b'])(
    'takes %s as it is',
    (name) => {
      expect(keysOf(name)).toEqual([name]);
    },
  );

  it('reads what an accessor of a class computes, also of a class above', () => {
    class Entity {
      private readonly number = 7;

      get id() {
        return this.number;
      }
    }
    class Order extends Entity {
      get self() {
        return { entity: this };
      }
    }
    expect(keysOf('order:$<args[0].id>', [new Order()])).toEqual(['order:7']);
    expect(keysOf('order:$<args[0].self.entity.id>', [new Order()])).toEqual(['order:7']);
  });

  it.each(['method', 'shared', 'constructor', '__proto__', 'toString', 'missing'])(
    'reads %s of no prototype',
    (step) => {
      class Order {
        method() {
          return 'x';
        }
      }
      Object.assign(Order.prototype, { shared: 'for all' });
      const error = refusal(() => keysOf(`order:$<args[0].${step}>`, [new Order()]));
      expect(isLockKeyError(error)).toBe(true);
      const found = /\(found: (.*)\)$/.exec((error as Error).message)?.[1];
      expect(found).toBe(step === 'method' ? 'function method' : found);
      expect(found).toMatch(/^(?:undefined|function )/);
    },
  );

  it('a function has the called object as its this', () => {
    const key = function (this: { tenant: string }, id: number) {
      return `${this.tenant}:${String(id)}`;
    };
    expect(keysOf(key as LockKey<never[]>, [7], { tenant: 'acme' })).toEqual(['acme:7']);
  });

  it('means the words that stand in it', () => {
    expect(keysOf('check_not_null')).toEqual(['check_not_null']);
  });

  it('several give 1,000 keys at most, together', () => {
    const ids = Array.from({ length: 600 }, (_, id) => id);
    expect(keysOf(['a:$<args[0][*]>', 'b'], [ids])).toHaveLength(601);
    expect(() => keysOf(['a:$<args[0][*]>', 'b:$<args[0][*]>'], [ids])).toThrow(/more than 1000 keys/);
    const some = ids.slice(0, 40);
    expect(keysOf('$<args[0][*]>:$<args[1][*]>', [some, some.slice(0, 20)])).toHaveLength(800);
    expect(() => keysOf('$<args[0][*]>:$<args[1][*]>', [some, some])).toThrow(/more than 1000 keys/);
  });

  it('several give several keys, sorted, each once', () => {
    expect(keysOf(['b:$<args[0]>', 'a:$<args[0]>', 'b:1'], [1])).toEqual(['a:1', 'b:1']);
  });

  it.each<[string, unknown[]]>([
    ['a missing argument', []],
    ['undefined', [undefined]],
    ['null', [null]],
    ['an empty text', ['']],
    ['NaN', [NaN]],
    ['Infinity', [Infinity]],
    ['an object', [{}]],
    ['an array', [['a']]],
    ['a date', [new Date()]],
    ['a function', [() => 'a']],
    ['a symbol', [Symbol('a')]],
    ['the text of a missing value', ['undefined']],
    ['the text of an object', ['[object Object]']],
  ])('refuses %s', (_, args) => {
    expect(() => keysOf('order:$<args[0]>', args)).toThrow(expect.objectContaining({ code: 'LOCK_KEY' }));
  });

  it.each([
    ['$<args[0].constructor.name>', [{}]],
    ['$<args[0].__proto__.x>', [{}]],
    ['$<args[0]["__proto__"]["toString"]>', [{}]],
    ['$<args[0].inherited>', [Object.create({ inherited: 'x' })]],
    ['$<args[0].length>', ['text']],
    ['$<this.constructor.name>', []],
  ])('%s reaches no prototype', (template, args) => {
    expect(() => keysOf(template, args)).toThrow(expect.objectContaining({ code: 'LOCK_KEY' }));
  });

  it('refuses an array that lacks an element', () => {
    const sparse: unknown[] = [1];
    sparse[2] = 3;
    expect(() => keysOf('$<args[0][*]>', [sparse])).toThrow(/found: undefined/);
  });

  it('refuses an empty list, and one without a bound', () => {
    expect(() => keysOf('$<args[0][*]>', [[]])).toThrow(/empty list/);
    const many = Array.from({ length: 1_001 }, (_, n) => n);
    expect(() => keysOf('$<args[0][*]>', [many])).toThrow(/more than 1000/);
    expect(() => keysOf('$<args[0][*].id>', [many.map((id) => ({ id }))])).toThrow(/more than 1000/);
    const some = many.slice(0, 100);
    expect(() => keysOf('$<args[0][*]>$<args[0][*]>$<args[0][*]>', [some])).toThrow(/more than 1000/);
  });

  it.each<[string, number, RegExp]>([
    ['', 0, /empty/],
    ['order:$<', 8, /starts with args, this, class, method/],
    ['order:$<foo>', 8, /starts with/],
    ['$<args>', 6, /is no value; name a part of it/],
    ['$<this>', 6, /is no value; name a part of it/],
    ['$<args.id>', 6, /args is followed by/],
    ['$<args["0"]>', 6, /args is followed by/],
    ['$<args[0]', 9, /expected/],
    ['$<args[0].>', 10, /name/],
    ['$<args[01]>', 6, /expected/],
    ['$<args[-1]>', 6, /expected/],
    ['$<args[0][]>', 9, /expected/],
    ['$<args[0]()>', 9, /expected/],
    ['$<args[0] >', 9, /expected/],
    ["$<args[0]['a']>", 9, /expected/],
    ['$<args[0]["\\x"]>', 9, /JSON/],
    ['$<class.name>', 7, /text/],
    ['$< args[0]>', 2, /starts with/],
  ])('%s is malformed at %d', (template, position, rule) => {
    expect(() => keysOf(template)).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
    expect(() => keysOf(template)).toThrow(rule);
    expect(() => keysOf(template)).toThrow(new RegExp(`position ${String(position)}\\b`));
  });

  it('repeats a malformed template on one line', () => {
    expect(() => keysOf('a\n$<b>')).toThrow('"a\\u000a$<b>" is malformed');
  });

  it('turns an error of a getter into LockKeyError', () => {
    const failing = {
      get id(): string {
        throw new Error('boom');
      },
    };
    expect(() => keysOf('$<args[0].id>', [failing])).toThrow(
      expect.objectContaining({ code: 'LOCK_KEY', cause: new Error('boom') }),
    );
  });
});

describe('a key function', () => {
  it('gets the arguments', () => {
    expect(keysOf((...args: unknown[]) => `sum:${String(args.length)}`, [1, 2])).toEqual(['sum:2']);
    expect(keysOf(() => ['b', 'a', 'b'])).toEqual(['a', 'b']);
  });

  it.each([
    undefined,
    null,
    '',
    5,
    {},
    [],
    ['a', ''],
    'order:undefined',
    'null',
    'x:[object Object]',
    'order-undefined',
    'undefined-orders',
    'x[object Map]',
  ])('must not give %j', (result) => {
    expect(() => keysOf(() => result as string)).toThrow(expect.objectContaining({ code: 'LOCK_KEY' }));
  });

  it.each([undefined, '', 5, ['a', '']])('is told that %j is no key', (result) => {
    expect(() => keysOf(() => result as string)).toThrow('must give a non-empty string (found: ');
  });

  it.each(['user:null-island', 'null_island:7', 'order:nullable', 'undefinedness', 'bananaNaNa', 'ünullü'])(
    'may give %j',
    (key) => {
      expect(keysOf(() => key)).toEqual([key]);
    },
  );

  it('must not give more than 1,000 keys', () => {
    const keys = Array.from({ length: 1_001 }, (_, n) => `a${String(n)}`);
    expect(() => keysOf(() => keys)).toThrow(/The key function gives more than 1000 keys/);
    expect(keysOf(() => keys.slice(1))).toHaveLength(1_000);
  });

  it('is not slowed down by a key of any length (pitfall 51)', () => {
    const key = ':[object '.repeat(20_000);
    const searched = jest.spyOn(RegExp.prototype, 'exec');
    expect(() => keysOf(() => key)).toThrow(expect.objectContaining({ code: 'LOCK_KEY' }));
    const lengths = searched.mock.calls.map(([text]) => text.length);
    searched.mockRestore();
    expect(Math.max(0, ...lengths)).toBeLessThan(5_000);
  });

  it('lets its own error pass', () => {
    expect(() =>
      keysOf(() => {
        throw new RangeError('mine');
      }),
    ).toThrow(RangeError);
  });
});

describe('whatever comes in', () => {
  const RUNS = times(1_000, 20_000);
  const fragment = fc.constantFrom(
    '$<',
    '$$<',
    '>',
    'args',
    '[0]',
    '[1]',
    '[*]',
    '.id',
    '["id"]',
    'this',
    'class',
    'method',
    '.',
    '[',
    ']',
    '"',
    '\\',
    ' ',
    ':',
    'x',
  );
  const template = fc.oneof(
    fc.array(fragment, { maxLength: 12 }).map((parts) => parts.join('')),
    fc.constantFrom(
      'k:$<args[0]>',
      'k:$<args[0].id>',
      'k:$<args[0][*]>',
      '$<args[*]>',
      '$<this.id>-$<args[1]>',
    ),
  );
  const value = fc.oneof(
    fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
    }),
    fc.record({ id: fc.anything() }),
    fc.constantFrom('undefined', 'null', 'NaN', '[object Object]', '', -0, NaN),
  );

  it('a template gives sound keys or a LockKeyError, and compiles or says where it is malformed', () => {
    let sound = 0;
    fc.assert(
      fc.property(template, fc.array(value, { maxLength: 3 }), value, (text, args, id) => {
        let make: ReturnType<typeof compileKey>;
        try {
          make = compileKey(text, ROOTS);
        } catch (error) {
          expect(isLockConfigError(error)).toBe(true);
          expect((error as Error).message).toMatch(/position \d+/);
          return;
        }
        try {
          const roots = { args, this: { id }, class: 'Orders', method: 'pay' };
          for (const key of make({ roots, args }) as string[]) {
            sound++;
            expect(key).not.toBe('');
            for (const segment of key.split(/[:-]/)) {
              expect(['undefined', 'null', 'NaN', '[object Object]']).not.toContain(segment);
            }
          }
        } catch (error) {
          if (!isLockKeyError(error)) throw error;
        }
      }),
      { numRuns: RUNS },
    );
    // The property would hold for a compiler that refuses everything.
    expect(sound).toBeGreaterThan(RUNS / 20);
  });
});
