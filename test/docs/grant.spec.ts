import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readPage } from './markdown.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(root + path, 'utf8');

it('README leads to the line of Lua that grants a lock in four files', () => {
  const [overview, commands, script] = [
    'docs/design/overview.md',
    'lib/stores/redis/commands/acquire-commands.ts',
    'lib/stores/redis/scripts/acquire.lua',
  ] as const;
  expect(readPage(root, 'README.md').links).toContain(overview);
  expect(read(overview)).toContain(`\`${commands}\``);
  expect(read(overview)).toContain(`\`${script}\``);
  expect(read(commands)).toContain('scripts.acquire');
  expect(read(script)).toMatch(/^ *token = enter\(/m);
});
