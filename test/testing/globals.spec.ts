import { expect, it } from '@jest/globals';
import { MemoryLockStore } from '../../lib/index.js';
import { describeLockStore } from '../../lib/testing/index.js';

it.each(['describe', 'it', 'beforeAll', 'afterAll'] as const)(
  'describeLockStore says that it needs the global %s',
  (word) => {
    const given: unknown = Reflect.get(globalThis, word);
    Reflect.set(globalThis, word, undefined);
    try {
      const place = () =>
        Promise.resolve({ open: () => new MemoryLockStore(), close: () => Promise.resolve() });
      expect(() => {
        describeLockStore('none', place);
      }).toThrow(
        expect.objectContaining({
          code: 'LOCK_CONFIG',
          message: expect.stringContaining(`missing: ${word})`),
        }),
      );
    } finally {
      Reflect.set(globalThis, word, given);
    }
  },
);
