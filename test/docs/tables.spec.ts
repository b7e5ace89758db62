import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { readPage } from './markdown.js';

describe('The grant', () => {
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
});

describe('The table of what passes the conformance suite', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
  const suites = readdirSync(new URL('../stores/conformance', import.meta.url), {
    recursive: true,
    encoding: 'utf8',
  })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      [...read(`test/stores/conformance/${file}`).matchAll(/describeLockStore\(\s*['`]([^'`$]+)/g)].map(
        ([, title = '']) => title,
      ),
    );

  const [, table = ''] =
    /<!-- conformance -->([^]*)<!-- \/conformance -->/.exec(read('docs/guide/topologies.md')) ?? [];

  it.each(suites)('names: %s', (title) => {
    expect(table).toContain(`| ${title}`);
  });
});

describe('The options', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

  /** The options of an interface and of those that it extends in these files, with `@default`. */
  function optionsOf(name: string, files: readonly string[]): Map<string, string | undefined> {
    const found = new Map<string, string | undefined>();
    for (const statement of files.flatMap(statementsOf)) {
      if (!ts.isInterfaceDeclaration(statement) || statement.name.text !== name) continue;
      for (const { types } of statement.heritageClauses ?? []) {
        for (const type of types)
          for (const [option, value] of optionsOf(type.getText().replace(/^Omit<(\w+),.*$/, '$1'), files))
            found.set(option, value);
      }
      for (const member of statement.members) {
        const text = ts.getJSDocTags(member).find(({ tagName }) => tagName.text === 'default')?.comment;
        found.set(member.name?.getText() ?? '', typeof text === 'string' ? text.trim() : undefined);
      }
    }
    return found;
  }

  const statementsOf = (file: string) =>
    ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2022, true).statements;

  /** The rows of the first table under `## Options`: options of the first cell, default of the second. */
  function rowsOf(page: string): Map<string, string | undefined> {
    const [, table = ''] =
      /^## Options\n\n\| option[^\n]*\n[^\n]*\n((?:\|[^\n]*\n)+)/m.exec(read(page)) ?? [];
    const rows = [...table.matchAll(/^\|([^|]*)\|([^|]*)\|/gm)];
    return new Map(
      rows.flatMap(([, names = '', value = '']) =>
        [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, /`([^`]+)`/.exec(value)?.[1]] as const),
      ),
    );
  }

  describe.each([
    ['docs/guide/module.md', 'LockModuleOptions', ['lib/api/options.ts']],
    ['docs/guide/decorator.md', 'DistributedLockOptions', ['lib/api/options.ts']],
  ])('The table of options in %s', (page, name, files) => {
    const rows = rowsOf(page);
    const options = optionsOf(name, files);

    it(`has each option of ${name}, and no other`, () => {
      expect(options.size).toBeGreaterThan(5);
      expect([...rows.keys()].sort()).toEqual([...options.keys()].sort());
    });

    it.each([...rows].filter(([, value]) => value !== undefined))(
      'says the default of %s',
      (option, value) => {
        expect(options.get(option)).toBe(value);
      },
    );
  });
});
