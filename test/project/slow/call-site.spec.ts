import { expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const script = `
  import { LockModule, LockService } from './dist/index.js';
  import { NestFactory } from '@nestjs/core';
  const module = { module: class {}, imports: [LockModule.forRoot({ store: 'memory' })] };
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const locks = app.get(LockService);
  await locks.acquire('a');
  await locks.acquire('a', { waitTime: 1, reentrant: false }).catch(({ message }) => console.log(message));
  await app.close();`;

/** Tests load the package as one file; here it has the files that it is published with, outside of node_modules. */
it('The place of a call is outside of the package', () => {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(stdout).toMatch(/, taken at .*\[eval1\]:\d+:\d+\n$/);
});
