import { expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

it('the public types accept what they should, and nothing else (test/types)', async () => {
  const check = promisify(execFile)('node_modules/.bin/tsd', { cwd: root }).catch((error: unknown) => error);
  expect(await check).toMatchObject({ stdout: '', stderr: '' });
});
