import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { transform } from '@swc/core';
import { build } from 'esbuild';
import { CACHE, keep, ROOT, write } from './bundle-cache.mjs';
import { SWC } from './swc.mjs';

/** What users import of the package. Other rooms, such as the board, are loaded file by file. */
const SOURCES = ['index', 'store/index', 'testing/index', 'stores/create-store'];

const COMMON = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  keepNames: true,
  // Half of the text, which is read again for each spec file.
  minifyWhitespace: true,
  logLevel: 'error',
  absWorkingDir: ROOT,
  write: false,
};

/** Its ES modules, because each module of its CommonJS is a function to call. */
const RXJS = `
  export * from './node_modules/rxjs/dist/esm/index.js';
  export * as operators from './node_modules/rxjs/dist/esm/operators/index.js';`;

const MAPPED = { sourcemap: 'external', sourcesContent: false };

/**
 * Makes one file of the sources of the package, and one of each package that most specs load. Jest reads, links and compiles
 * each module again for each spec file, and one file costs a fraction of some hundred. In place of each original,
 * `transform.mjs` gives specs a module that exports the same from such a file.
 */
export async function bundleSources() {
  const nest = (part) => ['index.js', 'internal.js'].map((name) => join('node_modules/@nestjs', part, name));
  const modules = await Promise.all([
    bundleModules(
      'lib',
      SOURCES.map((name) => `lib/${name}.ts`),
    ),
    bundleModules('common', nest('common')),
    bundleModules('core', nest('core')),
    bundleModules('testing', nest('testing').slice(0, 1)),
    bundleCommonJs('ioredis', "module.exports = require('ioredis');"),
    bundleCommonJs('rxjs', RXJS),
    write(
      join(CACHE, 'rxjs', 'operators.cjs'),
      `const { operators } = require('../rxjs-all.cjs');\nmodule.exports = operators;\n`,
    ),
  ]);
  process.env.LOCK_TEST_BUNDLED = await keep(
    'modules',
    'json',
    JSON.stringify(Object.assign({}, ...modules)),
  );
}

/** @returns for each module in the bundle of these: the bundle, its name there, and what it exports */
async function bundleModules(name, roots) {
  const options = {
    ...COMMON,
    format: 'esm',
    packages: 'external',
    metafile: true,
    plugins: [decorators],
  };
  const found = await build({ ...options, entryPoints: roots, outdir: 'out', splitting: true });
  const files = Object.keys(found.metafile.inputs);
  const names = new Map(files.map((file, index) => [file, `m${index}`]));
  const contents = files.map((file) => `export * as ${names.get(file)} from './${file}';`).join('\n');
  const [each, all] = await Promise.all([
    build({ ...options, entryPoints: files, outdir: 'out', splitting: true }),
    build({
      ...options,
      stdin: { contents, resolveDir: ROOT },
      outfile: join(CACHE, 'bundle.js'),
      ...MAPPED,
    }),
  ]);
  const [map, code] = all.outputFiles.map(({ text }) => text);
  // Stacks name the lines of the originals.
  const mapped = await keep(name, 'map', map);
  const bundle = await keep(name, 'mjs', `${code}//# sourceMappingURL=${basename(mapped)}\n`);
  return Object.fromEntries(
    Object.values(each.metafile.outputs)
      .filter(({ entryPoint }) => entryPoint !== undefined)
      .map(({ entryPoint, exports }) => [
        join(ROOT, entryPoint),
        { bundle, name: names.get(entryPoint), exports },
      ]),
  );
}

/**
 * One that is CommonJS, for those who import the package and for those who require it. Jest looks for names of exports in the text of
 * what is imported, which takes long for a long text, and asks the module itself as well.
 */
async function bundleCommonJs(name, contents) {
  const stdin = { contents, resolveDir: ROOT };
  const all = await build({ ...COMMON, format: 'cjs', stdin });
  await write(join(CACHE, `${name}-all.cjs`), all.outputFiles[0].text);
  await write(
    join(CACHE, `${name}.cjs`),
    `const all = require('./${name}-all.cjs');\nmodule.exports = all;\n`,
  );
  return {};
}

/** esbuild emits no metadata. */
const decorators = {
  name: 'decorators',
  setup(builder) {
    builder.onLoad({ filter: /\/lib\/.*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      if (!/^\s*(export )?@\w+\(|[(,]\s*@\w+\(/m.test(source)) return undefined;
      const { code } = await transform(source, { ...SWC, filename: path });
      return { contents: code, loader: 'js' };
    });
  },
};
