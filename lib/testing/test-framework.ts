import { LockConfigError } from '../api/errors.js';

/** The few functions of a test framework that the suite needs. The globals of Jest and Vitest fit. */
export interface TestFramework {
  describe: (title: string, body: () => void) => void;
  it: (title: string, body: () => Promise<void>) => void;
  beforeAll: (body: () => Promise<void>) => void;
  afterAll: (body: () => Promise<void>) => void;
}

/** @throws LockConfigError when the framework has no globals */
export function words(): TestFramework {
  const given = globalThis as unknown as Partial<TestFramework>;
  const missing = (['describe', 'it', 'beforeAll', 'afterAll'] as const).filter(
    (word) => typeof given[word] !== 'function',
  );
  if (missing.length === 0) return given as TestFramework;
  throw new LockConfigError(
    'describeLockStore',
    `needs the globals of a test framework (missing: ${missing.join(', ')}); Vitest has them with globals: true, Jest without injectGlobals: false`,
  );
}
