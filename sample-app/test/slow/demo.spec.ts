import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from '@jest/globals';
import { transformFile } from '@swc/core';

const app = fileURLToPath(new URL('../..', import.meta.url));

/** As `nest build sample-app`, in a second: types are checked elsewhere. */
async function build(): Promise<void> {
  const [source, target] = ['src', 'dist'].map((folder) => join(app, folder)) as [string, string];
  await rm(target, { recursive: true, force: true });
  await cp(source, target, { recursive: true, filter: (path) => !path.endsWith('.ts') });
  const names = await readdir(source, { recursive: true });
  for (const name of names.filter((file) => file.endsWith('.ts'))) {
    const { code } = await transformFile(join(source, name), {
      jsc: {
        target: 'es2022',
        parser: { syntax: 'typescript', decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: true },
      },
      module: { type: 'es6' },
    });
    const file = join(target, name.replace(/ts$/, 'js'));
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, code);
  }
}

beforeAll(build, 60_000);

it('The demo oversells without the lock, and with a paused holder without the fence', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(app, 'dist/demo.js')]);
  const cells = stdout.split('\n').map((line) => line.split(/ {2,}/));
  const of = (title: string) => cells.find(([first]) => first === title)?.slice(1);
  expect(Number(of('without the lock')?.[1])).toBeGreaterThan(0);
  expect(of('with the lock')?.slice(0, 2)).toEqual(['100', '0']);
  expect(of('with the lock, stopped while it pays')).toEqual(['2', '1', 'bought', 'bought']);
  expect(of('with the fence, stopped while it pays')).toEqual(['1', '0', 'bought', 'sold out']);
  expect(of('with the fence, stopped before its guard')).toEqual(['1', '0', 'refused', 'bought']);
  // What a reader of the guide has seen before.
  const page = await readFile(join(app, '../docs/guide/recipes/fencing.md'), 'utf8');
  expect(page).toContain(stdout.slice(stdout.indexOf('the first of two')).trim());
}, 150_000);
