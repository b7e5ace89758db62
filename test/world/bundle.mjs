import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { keep, ROOT } from '../support/bundle-cache.mjs';

const SEAM = join(ROOT, 'test/programs/simulation/world/seam.mjs');

const ENTRY = `
  export { LockService } from './module/lock-service.ts';
  export * from './api/errors.ts';
  export { MemoryLockStore } from './stores/memory/memory-lock-store.ts';
  export { Redis, AbstractConnector } from 'ioredis';`;

/** Of Nest the service needs the logger, whose lines a test may look at, and what its errors extend. */
const NEST = `
  export { HttpException } from '${join(ROOT, 'node_modules/@nestjs/common/exceptions/http.exception.js')}';
  export class Logger {
    log(text) { globalThis.simulatedInstance.log('log', text); }
    warn(text) { globalThis.simulatedInstance.log('warn', text); }
    error(text) { globalThis.simulatedInstance.log('error', text); }
    debug(text) { globalThis.simulatedInstance.log('debug', text); }
    verbose(text) { globalThis.simulatedInstance.log('verbose', text); }
  }`;

/** Computed once and for all processes: 14 ms of a core, and the same for each. */
const SHARED = '??= (globalThis.simulatedInstance.shared.slots ??= countOut())';

/**
 * Makes one file of the sources of the package and of ioredis, in which the seam to the runtime is that of a simulated process, and
 * names the file in LOCK_TEST_WORLD.
 */
export async function bundleWorld() {
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: join(ROOT, 'lib'), loader: 'ts' },
    write: false,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    // That of rxjs, of which little is used.
    conditions: ['es2015'],
    logLevel: 'error',
    tsconfig: join(ROOT, 'tsconfig.json'),
    plugins: [
      {
        name: 'the world in place of the runtime',
        setup(setup) {
          setup.onResolve({ filter: /^@nestjs\/common$/ }, () => ({ path: 'nest', namespace: 'world' }));
          setup.onLoad({ filter: /^nest$/, namespace: 'world' }, () => ({
            contents: NEST,
            resolveDir: ROOT,
          }));
          const replace = (file, contentsOf) => {
            let isReplaced = false;
            const filter = new RegExp(`/lib/${file.replaceAll('.', '\\.')}$`);
            setup.onLoad({ filter }, async ({ path }) => {
              const original = await readFile(path, 'utf8');
              const contents = await contentsOf(original);
              isReplaced = contents !== original;
              return { contents, loader: 'ts' };
            });
            // Without the replacement most of a spec would still pass, in real time.
            setup.onEnd(() => {
              if (!isReplaced) throw new Error(`Nothing of lib/${file} was replaced`);
            });
          };
          replace('runtime/runtime.ts', () => readFile(SEAM, 'utf8'));
          replace('stores/redis/connection/slots.ts', (original) =>
            original.replace('??= countOut()', SHARED),
          );
        },
      },
    ],
  });
  process.env.LOCK_TEST_WORLD = await keep('world', 'js', outputFiles[0].text);
}
