import { describe, expect, it } from '@jest/globals';
import { luaMutants } from './lua-mutants.js';
import { applied, type Mutant } from './mutant.js';
import { typescriptMutants } from './typescript-mutants.js';

const texts = (make: (file: string, source: string) => Mutant[], source: string) =>
  make('file', source).map((mutant) => applied(source, mutant));

describe('mutants of TypeScript', () => {
  it('turn a condition round, leave its body out, move its boundary and lose what comes back', () => {
    expect(texts(typescriptMutants, 'const f = (a: number) => { if (a < 1) return g(a); h(); };')).toEqual([
      'const f = (a: number) => {};',
      'const f = (a: number) => { if (!(a < 1)) return g(a); h(); };',
      'const f = (a: number) => { if (false) return g(a); h(); };',
      'const f = (a: number) => { if (a <= 1) return g(a); h(); };',
      'const f = (a: number) => { if (a < 1) return; h(); };',
      'const f = (a: number) => { if (a < 1) return g(a); ; };',
    ]);
  });

  it('leave alone what would be the same', () => {
    expect(texts(typescriptMutants, 'const f = (a: number) => { return undefined; };')).toEqual([]);
  });

  it('change operators, truths and bounds, but no types', () => {
    expect(texts(typescriptMutants, 'const a: true | 1 = Math.max(b ?? c, d - 1) > 0 && true;')).toEqual([
      'const a: true | 1 = Math.max(b ?? c, d - 1) > 0 || true;',
      'const a: true | 1 = Math.max(b ?? c, d - 1) >= 0 && true;',
      'const a: true | 1 = Math.min(b ?? c, d - 1) > 0 && true;',
      'const a: true | 1 = Math.max(b, d - 1) > 0 && true;',
      'const a: true | 1 = Math.max(b ?? c, d + 1) > 0 && true;',
      'const a: true | 1 = Math.max(b ?? c, d - 1) > 0 && false;',
    ]);
  });
});

describe('mutants of Lua', () => {
  it('turn a condition round, change its comparison, and leave a command out', () => {
    expect(texts(luaMutants, "-- if a < 1 then\nif a <= 1 then\n  redis.call('SET', 'a + b')\nend")).toEqual([
      "-- if a < 1 then\nif not (a <= 1) then\n  redis.call('SET', 'a + b')\nend",
      "-- if a < 1 then\nif a < 1 then\n  redis.call('SET', 'a + b')\nend",
      '-- if a < 1 then\nif a <= 1 then\n  \nend',
    ]);
  });
});
