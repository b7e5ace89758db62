import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { it } from '@jest/globals';
import { transformFile } from '@swc/core';
import { until } from '../scenarios/until.js';

it('ends a child, even a frozen one, when its parent is killed', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'lock-guard-'));
  const { code } = await transformFile(fileURLToPath(new URL('./guard.ts', import.meta.url)), {
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
  });
  const program = `${code}
    const child = spawn('sleep', ['60'], { stdio: 'inherit' });
    guard(child, ${JSON.stringify(directory)});
    child.kill('SIGSTOP');
    console.log('ready');`;
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', program]);
  await once(parent.stdout, 'data');
  parent.kill('SIGKILL');
  // The child has the same output, which closes with the last of them.
  await once(parent, 'close');
  await until(() => !existsSync(directory));
});
