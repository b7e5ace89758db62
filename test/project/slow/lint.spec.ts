import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const PROGRAM = fileURLToPath(new URL('../../../scripts/lint/main.mjs', import.meta.url));

/** What the program says of a project that has these files, without the cures. */
function lint(files: Record<string, string>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'lint-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, folder], { encoding: 'utf8' });
    expect(stderr).toBe('');
    const lines = stdout.split('\n').filter((line) => line !== '');
    expect(status).toBe(lines.length === 0 ? 0 : 1);
    for (const line of lines) expect(line).toMatch(/ \(.+\)$/);
    return lines.map((line) => line.replace(/ \([^(]+\)$/, ''));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const next = (link: string) => `# Page\n\nBack to [README](../../README.md). Next: ${link}.\n`;
const ROW = '| text | cure |\n| --- | --- |\n| `the key … is empty` | name it |\n';

it('finds nothing in a project that keeps the rules', () => {
  const found = lint({
    'README.md': 'The caller waits.\n\n```ts\nconst who = 1;\n```\n\nSee `who`.\n',
    'docs/design/glossary.md': 'A lease: `client/lease.ts`.',
    'docs/guide/module.md': next('[decorator](decorator.md)'),
    'docs/guide/decorator.md': next('[troubleshooting](../troubleshooting.md)'),
    'docs/troubleshooting.md': next('[calls](troubleshooting/calls.md)'),
    'docs/troubleshooting/calls.md': ROW,
    'lib/api/errors.ts': "import { HttpException } from '@nestjs/common';\nexport const E = HttpException;\n",
    'lib/client/lease.ts': [
      "import { E } from '../api/errors.js';",
      "import type { LockStore } from '../store/lock-store.js';",
      '// Fake timers delay queueMicrotask',
      ' * `performance.now()` stands still',
      'export const isOurs = (text: string) => text.startsWith("what another one says");',
      "export const fail = (key: string, s: LockStore) => new E(`the key ${key}` + ' is empty', Number(s));",
    ].join('\n'),
    'lib/store/lock-store.ts': 'export type LockStore = number;\n',
    'test/lease.spec.ts': 'it(`leases ${who}`, () => { somebody(); });\n',
  });
  expect(found).toEqual([]);
});

it('finds what breaks them, each by its line', () => {
  const found = lint({
    'README.md': 'One line.\n\n```ts\nconst a = 1;\n```\n\nWhoever waits.\n',
    'docs/design/glossary.md': 'Words\n\nA lease: `client/gone.ts`.\n',
    'docs/guide/module.md': next('[decorator](decorator.md)'),
    'docs/guide/decorator.md': next('[the module](module.md)'),
    'docs/troubleshooting/calls.md': `${ROW}| \`no such text\` | none |\n`,
    'lib/client/hearing.ts': 'export interface Patience {\n  readonly heardOf: number;\n}\n',
    'lib/client/a.ts': [
      "import { B } from './b.js';",
      "import { Redis } from 'ioredis';",
      "import { Injectable } from '@nestjs/common';",
      "export * from '../stores/redis/lane.js';",
      "import { gone } from './gone.js';",
      'const at = Date.now(); // Date.now',
      "import { setTimeout as sleep } from 'node:timers/promises';",
      '/**\n * Somebody waits.\n */',
      "throw new Error('nobody says why this is');",
    ].join('\n'),
    'docs/guarantees.md': '## Promises\n\n- **No end.** None.\n\n## What is not guaranteed\n',
    'test/promises/promises.json': '{}',
    'lib/client/b.ts': "import './c.js';\nimport type { A } from './a.js';\n",
    'lib/client/c.ts': "import {\n  A,\n} from './a.js';\n",
    'lib/cli/main.ts': "import { x } from 'commander';\n",
    'lib/nest/health.ts': "import { y } from '@nestjs/terminus';\nimport { z } from '@opentelemetry/api';\n",
    'lib/stores/redis/lane.ts': "import { m } from '../memory/m.js';\n",
    'lib/stores/memory/m.ts': "export const m = 'the key … is empty';\n",
    'lib/stores/redis/scripts/x.lua': 'local who = 1\n-- for whom\n',
    'test/inbox.spec.ts': "describe('a', () => {\n  it.each([1])('knows who', () => {});\n});\n",
  });
  expect(found.sort()).toEqual(
    [
      'README.md:7 "Whoever" is a clause without a noun, of which pages have too many',
      'README.md:7 "Whoever" stands for a person',
      'docs/design/glossary.md:3 no file lib/client/gone.ts',
      'docs/guarantees.md:3 untested promise: No end',
      'docs/guarantees.md:5 "What is" is a clause without a noun, of which pages have too many',
      'docs/guide/decorator.md:3 leads to docs/guide/module.md out of order',
      'docs/troubleshooting/calls.md:3 no page leads here',
      'docs/troubleshooting/calls.md:4 nothing says: no such text',
      'lib/cli/main.ts:1 cli/main.ts must not load commander',
      'lib/client/a.ts:1 a file imports itself: client/a.ts → client/b.ts → client/c.ts → client/a.ts',
      'lib/client/a.ts:2 client/a.ts must not import ioredis',
      'lib/client/a.ts:3 client/a.ts must not import @nestjs/common',
      'lib/client/a.ts:4 room client must not import room stores (stores/redis/lane.ts)',
      'lib/client/a.ts:5 there is no file lib/client/gone.ts',
      'lib/client/a.ts:6 takes Date.now from the runtime',
      'lib/client/a.ts:7 takes setTimeout from the runtime',
      'lib/client/a.ts:9 "Somebody" stands for a person',
      'lib/client/a.ts:11 "nobody" stands for a person',
      'lib/client/a.ts:11 unexplained message: nobody says why this is',
      'lib/client/hearing.ts:1 retired word "hearing" in the name client/hearing.ts',
      'lib/client/hearing.ts:1 retired word "patience" in the name Patience',
      'lib/client/hearing.ts:2 retired word "heard" in the name heardOf',
      'lib/nest/health.ts:1 nest/health.ts must not import @nestjs/terminus',
      'lib/nest/health.ts:2 nest/health.ts must not import @opentelemetry/api',
      'lib/stores/redis/lane.ts:1 store redis must not import stores/memory/m.ts',
      'lib/stores/redis/scripts/x.lua:2 "whom" stands for a person',
      'test/inbox.spec.ts:1 retired word "inbox" in the name inbox.spec.ts',
      'test/inbox.spec.ts:2 "who" stands for a person',
    ].sort(),
  );
});
