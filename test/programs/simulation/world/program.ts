import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import vm from 'node:vm';
import { build } from 'esbuild';
import { patched, type Patch } from '../../chaos/variants/variant.js';
import type { AbstractConnector, Redis } from 'ioredis';
import type { LockService, LockUnavailableError } from '../../../../lib/index.js';
import type { MemoryLockStore } from '../../../../lib/stores/memory/memory-lock-store.js';
import type { QuorumLockStore } from '../../../../lib/stores/quorum/quorum-lock-store.js';
import { Actor } from './actor.js';
import { exchangeable } from './exchangeable.js';
import { type Instance, NAMES, namesOf } from './names.js';
import { scopes } from './scopes.js';
import { World } from './world.js';

const require = createRequire(import.meta.url);
const SEAM = readFileSync(new URL('seam.mjs', import.meta.url), 'utf8');

/** What an instance of the package gives to the simulation. */
export interface Package {
  readonly LockService: typeof LockService;
  readonly LockUnavailableError: typeof LockUnavailableError;
  readonly MemoryLockStore: typeof MemoryLockStore;
  readonly QuorumLockStore: typeof QuorumLockStore;
  /** Of the ioredis of the process, where the topology has clients. */
  readonly Redis: typeof Redis;
  readonly AbstractConnector: typeof AbstractConnector;
}

const ENTRY = `
  export { LockService, LockUnavailableError } from './index.js';
  export { MemoryLockStore } from './stores/memory/memory-lock-store.js';
  export { QuorumLockStore } from './stores/quorum/quorum-lock-store.js';`;

/** A process whose ioredis is an instance of its own has its timers, too. */
const CLIENT = `export { Redis, AbstractConnector } from 'ioredis';`;

type Instantiate = (...given: unknown[]) => void;

/** What the modules of a process keep while another one runs. */
interface Process {
  readonly actor: Actor;
  kept: (readonly unknown[])[];
}

/**
 * The built package as one script, with a passage replaced where it is to be broken. All processes run the same instance, and
 * what its modules keep between calls is exchanged when another process runs. So each has a package of its own, and V8 learns
 * once for all of them: with an instance for each, most of the time went into that.
 */
export class Program {
  private readonly instance: Instance;
  private readonly module: Package;
  private current: Process;

  private constructor(instantiate: Instantiate, nobody: Actor) {
    const instance: Instance = (this.instance = { actor: nobody, kept: [] });
    const module = { exports: {} };
    const names = namesOf(instance, scopes);
    instantiate(require, module, module.exports, ...NAMES.map((name) => names[name]));
    this.module = module.exports as Package;
    this.current = { actor: nobody, kept: [] };
  }

  /** @param hasClients each process has an ioredis of its own */
  static async load(dist: string, hasClients: boolean, patches: readonly Patch[] = []): Promise<Program> {
    const changed = await patched(dist, patches);
    const files = new Map([...changed].map(([file, code]) => [join(dist, file), code]));
    files.set(join(dist, 'runtime/runtime.js'), SEAM);
    const result = await build({
      stdin: { contents: hasClients ? ENTRY + CLIENT : ENTRY, resolveDir: dist },
      bundle: true,
      write: false,
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      external: ['@nestjs/*', 'rxjs', 'reflect-metadata', ...(hasClients ? [] : ['ioredis'])],
      plugins: [
        {
          name: 'replaced files',
          setup: ({ onLoad }) => {
            onLoad({ filter: /dist\/.*\.js$/ }, ({ path }) => {
              const contents = files.get(path);
              return { contents: exchangeable(contents ?? readFileSync(path, 'utf8')), loader: 'js' };
            });
          },
        },
      ],
    });
    const code = result.outputFiles[0]?.text ?? '';
    const wrapped = `(function (require, module, exports, ${NAMES.join(', ')}) {${code}\n})`;
    const instantiate = vm.runInThisContext(wrapped, { filename: 'package.js' }) as Instantiate;
    return new Program(instantiate, new Actor(new World(0), 'nobody'));
  }

  /** The package in a process of its own, which runs now. */
  start(actor: Actor): Package {
    const { instance, current } = this;
    const process: Process = { actor, kept: [] };
    current.kept = instance.kept.map((one) => one.take());
    instance.actor = actor;
    this.current = process;
    for (const one of instance.kept) one.renew();
    actor.onTurn = () => {
      this.enter(process);
    };
    return this.module;
  }

  private enter(process: Process): void {
    const { instance, current } = this;
    if (process === current) return;
    current.kept = instance.kept.map((one) => one.take());
    instance.kept.forEach((one, index) => {
      one.put(process.kept[index]!);
    });
    instance.actor = process.actor;
    this.current = process;
  }
}
