import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';

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

describe('The table of what passes the conformance suite', () => {
  const [, table = ''] =
    /<!-- conformance -->([^]*)<!-- \/conformance -->/.exec(read('docs/guide/topologies.md')) ?? [];

  it.each(suites)('names: %s', (title) => {
    expect(table).toContain(`| ${title}`);
  });
});
