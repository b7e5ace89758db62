import { mkdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUTPUT = join(ROOT, 'node_modules', '.cache', 'es-modules');
const PACKAGES = [
  'nestjs-cls',
  '@nestjs-cls/transactional',
  '@nestjs-cls/transactional-adapter-typeorm',
  '@willsoto/nestjs-prometheus',
];
const OTHERS = /^(async_hooks|@nestjs\/(common|core)(\/.*)?|rxjs|reflect-metadata|typeorm|prom-client)$/;

/**
 * Makes an ES module of each CommonJS package for Nest. They load Nest 12, which is ESM, by `require`: Node 20 does
 * that, Jest does it from Node 24.9 on.
 */
export async function bundleCommonJs() {
  await Promise.all(PACKAGES.map(bundle));
}

async function bundle(name) {
  const outfile = join(OUTPUT, `${name}.mjs`);
  await mkdir(dirname(outfile), { recursive: true });
  // Another run may be reading the file, so it is never half written.
  const draft = `${outfile}-${String(process.pid)}`;
  // esbuild does not know the names that a CommonJS package exports.
  const names = Object.keys(createRequire(import.meta.url)(name));
  try {
    await build({
      stdin: { contents: `export { ${names.join(', ')} } from '${name}';`, resolveDir: ROOT },
      outfile: draft,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      keepNames: true,
      logLevel: 'error',
      plugins: [imports((path) => OTHERS.test(path) || (PACKAGES.includes(path) && path !== name))],
    });
    await rename(draft, outfile);
  } finally {
    await rm(draft, { force: true });
  }
}

/** Leaves packages out of the bundle, and turns each `require` of one into an `import`. */
const imports = (isLeftOut) => ({
  name: 'imports',
  setup(builder) {
    builder.onResolve({ filter: /.*/ }, ({ path, kind }) => {
      if (!isLeftOut(path)) return undefined;
      return kind === 'require-call' ? { path, namespace: 'imported' } : { path, external: true };
    });
    builder.onLoad({ filter: /.*/, namespace: 'imported' }, ({ path }) => ({
      contents: `export * from '${path}';`,
      resolveDir: ROOT,
    }));
  },
});
