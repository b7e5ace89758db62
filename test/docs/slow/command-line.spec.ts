import { describe, expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { readFileSync } from 'node:fs';
import { COMMAND_HELP, HELP } from '../../../lib/cli/help.js';
import { EXIT } from '../../../lib/cli/exit-code.js';
import { readPage } from '../markdown.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const path = 'docs/guide/command-line.md';
const page = readPage(root, path);
const texts = page.blocks.filter(({ language }) => language === 'text').map(({ code }) => code);

describe('The page about the command line', () => {
  it.each([['the program', HELP], ...Object.entries(COMMAND_HELP)])(
    'has the help of %s as it is',
    (_, help) => {
      expect(texts).toContain(`${help}\n`);
    },
  );

  it('says what each exit code means', () => {
    const [, table = ''] = /^## Exit codes\n([^]*)/m.exec(readFileSync(`${root}/${path}`, 'utf8')) ?? [];
    const codes = [...table.matchAll(/^\| (\d+)/gm)].map(([, code]) => Number(code));
    expect(codes).toEqual(Object.values(EXIT));
  });
});
