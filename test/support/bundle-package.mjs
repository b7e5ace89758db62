import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(PACKAGE, 'node_modules', '.cache');

/** What the package needs only where an application has it, and Nest loads only then. */
const OPTIONAL = [
  '@nestjs/microservices',
  '@nestjs/platform-express',
  '@nestjs/terminus',
  '@nestjs/websockets',
  'class-transformer',
  'class-validator',
];

/**
 * Makes one file of the built package and its dependencies, and names it in LOCK_TEST_PACKAGE. The tests start some
 * hundred processes, and each spends 0.6 s of CPU time on the thousand files of the package and Nest, 0.2 s on one file.
 */
export async function bundlePackage() {
  const entry = join(PACKAGE, 'dist', 'index.js');
  // Without a build the tests that need one say so.
  if (!existsSync(entry)) return;
  await mkdir(CACHE, { recursive: true });
  const outfile = join(CACHE, 'package-under-test.mjs');
  // Another run may be starting processes with the file, so it is never half written.
  const draft = join(CACHE, `package-under-test-${String(process.pid)}.mjs`);
  try {
    await build({
      entryPoints: [entry],
      outfile: draft,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      keepNames: true,
      logLevel: 'error',
      external: ['reflect-metadata', ...OPTIONAL.flatMap((name) => [name, `${name}/*`])],
      // For what is CommonJS in it.
      banner: {
        js: "import { createRequire as requireOf } from 'node:module';\nconst require = requireOf(import.meta.url);",
      },
    });
    await rename(draft, outfile);
  } finally {
    await rm(draft, { force: true });
  }
  process.env.LOCK_TEST_PACKAGE = pathToFileURL(outfile).href;
}
