/**
 * An application whose files a bundler or a minifier has made one of. The numbers are those of a list of verified defects of
 * lock libraries; what is tested is that ours does not have them.
 *
 * 82  A name made from a class name in a minified bundle: two releases of one service run one job together.
 */
import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { minify } from '@swc/core';
import { build, type BuildOptions } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
// Where the packages of the application are found.
const FOLDER = join(ROOT, 'node_modules', '.cache', `bundled-${String(process.pid)}`);

afterAll(() => rm(FOLDER, { recursive: true, force: true }));

const bundle = async (entry: string, options: BuildOptions): Promise<string> => {
  const { outputFiles = [] } = await build({
    entryPoints: [join(ROOT, entry)],
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
    ...options,
  });
  return outputFiles[0]?.text ?? '';
};

/** As TypeScript and SWC write a class. */
const named = (code: string): string => code.replace(/\b(\w+) = class (?=\{|extends)/g, '$1 = class $1 ');

/** Leaves this package out of the bundle, as a bundler does with all of node_modules. */
const LEFT_OUT: BuildOptions = {
  plugins: [
    {
      name: 'left-out',
      setup({ onResolve }) {
        onResolve({ filter: /lib\/index\.js$/ }, () => ({ path: './package.mjs', external: true }));
      },
    },
  ],
};

beforeAll(async () => {
  await mkdir(FOLDER, { recursive: true });
  await writeFile(join(FOLDER, 'package.mjs'), named(await bundle('lib/index.ts', { keepNames: true })));
});

const APP = 'test/pitfalls/bundled/app.ts';

/** swc has the minifier of terser, with its options. */
const minified = async (keep: boolean): Promise<string> => {
  const source = named(await bundle(APP, LEFT_OUT));
  const options = { keep_classnames: keep, toplevel: true };
  const { code } = await minify(source, { module: true, compress: options, mangle: options });
  return code;
};

type Answers = Record<
  'orders' | 'job' | 'reports' | 'labelled' | 'written' | 'carts' | 'mixed' | 'both',
  string
>;

const run = async (name: string, code: string): Promise<Answers> => {
  const file = join(FOLDER, `${name}.mjs`);
  await writeFile(file, code);
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  return JSON.parse(stdout) as Answers;
};

const NO_NAME = expect.stringMatching(
  /has a key with \$<class>, and "[\w$]{1,3}" is no name .*keepNames/,
) as unknown;
const NO_LABEL = expect.stringMatching(/has a key function and no label.*"[\w$]{1,3}"/) as unknown;
const AT_RANDOM = expect.stringMatching(/has a key with \$<class>, and "[\da-f]{21}" is no name/) as unknown;
const SHARED = expect.stringMatching(/another class is named "Orders" and has the same key/) as unknown;
const always = { labelled: 'up', written: 'up', mixed: AT_RANDOM };
const REFUSED = {
  ...always,
  orders: NO_NAME,
  job: NO_NAME,
  reports: NO_LABEL,
  carts: NO_NAME,
  both: NO_NAME,
};
const ACCEPTED = { ...always, orders: 'up', job: 'up', reports: 'up', carts: 'up', both: SHARED };

describe('$<class> and labels made of the name of a class (pitfall 82)', () => {
  it.each<[string, object, () => Promise<string>]>([
    ['minified', REFUSED, () => bundle(APP, { minify: true })],
    ['minified with its names', ACCEPTED, () => bundle(APP, { minify: true, keepNames: true })],
    ['with short names', REFUSED, () => bundle(APP, { minifyIdentifiers: true })],
    [
      'with short names, without this package',
      REFUSED,
      () => bundle(APP, { minifyIdentifiers: true, ...LEFT_OUT }),
    ],
    ['minified without this package', REFUSED, () => bundle(APP, { minify: true, ...LEFT_OUT })],
    [
      'minified with its names, without this package',
      { ...ACCEPTED, job: NO_NAME },
      () => bundle(APP, { minify: true, keepNames: true, ...LEFT_OUT }),
    ],
    ['minified by SWC', REFUSED, () => minified(false)],
    // The second class is written as Orders2 in what it gets.
    ['minified by SWC with its names', { ...ACCEPTED, job: NO_NAME, both: 'up' }, () => minified(true)],
    [
      'of one file',
      {
        ...ACCEPTED,
        both: expect.stringMatching(
          /there are the classes "Orders2?" and "Orders2?".*Write the name into the key of both\. If .*keepNames/,
        ) as unknown,
      },
      () => bundle(APP, {}),
    ],
    ['of one file with its names', ACCEPTED, () => bundle(APP, { keepNames: true })],
  ])('in an application %s', async (name, answers, make) => {
    expect(await run(name.replaceAll(/\W/g, '-'), await make())).toEqual(answers);
  });
});
