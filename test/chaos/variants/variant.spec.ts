import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { broken } from './broken.js';
import { breakPackage } from './variant.js';

const ENTRY = new URL('../../../dist/index.js', import.meta.url).href;

describe('breakPackage', () => {
  it.each(broken.map(({ name, patches }) => ({ name, patches })))('breaks: $name', async ({ patches }) => {
    const copy = fileURLToPath(await breakPackage(ENTRY, patches));
    expect(existsSync(copy)).toBe(true);
    await rm(dirname(dirname(copy)), { recursive: true });
  });

  it('does not pass off a whole copy as a broken one', async () => {
    const patches = [{ file: 'core/deadline.js', find: 'nothing like this', replace: '' }];
    await expect(breakPackage(ENTRY, patches)).rejects.toThrow('nothing any more');
  });
});
