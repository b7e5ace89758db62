import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { mutants } from '../../../simulation/controls/mutants.js';
import { broken } from '../broken.js';
import { breakPackage, patched } from '../variant.js';

const ENTRY = new URL('../../../../../dist/index.js', import.meta.url).href;

const DIST = dirname(fileURLToPath(ENTRY));

describe('breakPackage', () => {
  it.each([...broken, ...mutants].map(({ name, patches }) => ({ name, patches })))(
    'finds what it breaks: $name',
    async ({ patches }) => {
      for (const [file, code] of await patched(DIST, patches)) {
        expect(code).not.toBe(readFileSync(join(DIST, file), 'utf8'));
      }
    },
  );

  it('makes a copy that can be loaded, and leaves the package as it is', async () => {
    const file = 'client/holding/deadline.js';
    const before = readFileSync(join(DIST, file), 'utf8');
    const copy = dirname(fileURLToPath(await breakPackage(ENTRY, [{ file, find: '0.01', replace: '0.02' }])));
    expect(existsSync(join(copy, 'index.js'))).toBe(true);
    expect(readFileSync(join(copy, file), 'utf8')).toBe(before.replaceAll('0.01', '0.02'));
    expect(readFileSync(join(DIST, file), 'utf8')).toBe(before);
    await rm(dirname(copy), { recursive: true });
  });

  it('does not pass off a whole copy as a broken one', async () => {
    const patches = [{ file: 'client/holding/deadline.js', find: 'nothing like this', replace: '' }];
    await expect(breakPackage(ENTRY, patches)).rejects.toThrow('nothing any more');
  });
});
