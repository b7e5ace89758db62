import { expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const script = (load: string) => `
  ${load}
  NestFactory.createApplicationContext({ module: class {}, imports: [LockModule.forRoot({ store: 'memory' })] }, { logger: false })
    .then(async (app) => {
      const locks = app.get(LockService);
      await locks.acquire('a');
      await locks.acquire('a', { waitTime: 1, reentrant: false }).catch(({ message }) => console.log(message));
      await app.close();
    });`;

/** Tests load the package as one file; here it has the files that it is published with, outside of node_modules. */
it.each([
  [
    'ES modules',
    'module',
    "import { LockModule, LockService } from './dist/index.js'; import { NestFactory } from '@nestjs/core';",
  ],
  [
    'CommonJS',
    'commonjs',
    "const { LockModule, LockService } = require('./dist/cjs/index.js'); const { NestFactory } = require('./test/nest-11/node_modules/@nestjs/core');",
  ],
])('The place of a call is outside of the package in %s', (_, type, load) => {
  const { stdout, stderr } = spawnSync(process.execPath, [`--input-type=${type}`, '-e', script(load)], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/, taken at (.*[\\/])?\[eval1?\](-wrapper)?:\d+:\d+\n$/);
});
