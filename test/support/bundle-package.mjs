import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { build } from 'esbuild';
import { keep, ROOT } from './bundle-cache.mjs';

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
  const entry = join(ROOT, 'dist', 'index.js');
  // Without a build the tests that need one say so.
  if (!existsSync(entry)) return;
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
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
  process.env.LOCK_TEST_PACKAGE = pathToFileURL(await keep('package', 'mjs', outputFiles[0].text)).href;
}
