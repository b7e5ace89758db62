import { fileURLToPath } from 'node:url';

// The tests are written for Jest; Vitest has the same words.
const globals = fileURLToPath(new URL('vitest-globals.js', import.meta.url));

export default {
  resolve: { alias: { '@jest/globals': globals } },
  test: { globals: true, include: ['dist/*.spec.js'], testTimeout: 30_000 },
};
