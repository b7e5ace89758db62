import { createRequire } from 'node:module';
import { join } from 'node:path';
import vm from 'node:vm';
import { build } from 'esbuild';
import { patched, type Patch } from '../../chaos/variants/variant.js';
import type { AbstractConnector, Redis } from 'ioredis';
import type { LockService, LockUnavailableError } from '../../../../lib/index.js';
import type { MemoryLockStore } from '../../../../lib/stores/memory/memory-lock-store.js';
import type { QuorumLockStore } from '../../../../lib/stores/quorum/quorum-lock-store.js';
import type { Actor } from './actor.js';
import { scopes } from './scopes.js';

const require = createRequire(import.meta.url);

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

/** Names that code of a process finds in place of those of the real one. */
const NAMES = [
  'globalThis',
  'process',
  'performance',
  'Date',
  'Math',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
] as const;

type Names = Record<(typeof NAMES)[number], unknown>;
type Instance = (...given: unknown[]) => void;

/** The seam: all that the package takes from the runtime, as an actor gives it. */
const SEAM = `
  const actor = globalThis.simulatedActor;
  export const monotonicTime = () => actor.look();
  export const timeOrigin = () => actor.timeOrigin;
  export const wallTime = () => actor.wall();
  export const processUptime = () => actor.monotonic() / 1000;
  export const machineUptime = () => actor.monotonic() / 1000;
  export const setTimer = (callback, time) => actor.setTimer(callback, time);
  export const clearTimer = (timer) => actor.clearTimer(timer);
  export const setRepeatingTimer = (callback, time) => actor.setRepeatingTimer(callback, time);
  export const clearRepeatingTimer = (timer) => actor.clearTimer(timer);
  export const sleep = (time) => actor.sleep(time);
  export const afterInput = (callback) => { actor.afterInput(callback); };
  export const afterStep = (callback) => { queueMicrotask(callback); };
  export const atEndOfTurn = (callback) => { process.nextTick(callback); };
  export const random = () => actor.random.next();
  export const uuid = () => actor.uuid();
  export const timersAreFaked = () => false;
  export const timersAreLegacy = () => false;`;

/** Where the package finds the storage of its scopes. */
const SCOPES = Symbol.for('nestjs-distributed-lock.scopes');
/** The built package as one script, with a passage replaced where it is to be broken. Each process runs an instance of its own. */
export class Program {
  private constructor(private readonly instantiate: Instance) {}

  /** @param hasClients each process has an ioredis of its own */
  static async load(dist: string, hasClients: boolean, patches: readonly Patch[] = []): Promise<Program> {
    const changed = await patched(dist, patches);
    const files = new Map([...changed].map(([file, code]) => [join(dist, file), code]));
    files.set(join(dist, 'lock.runtime.js'), SEAM);
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
              return contents === undefined ? undefined : { contents, loader: 'js' };
            });
          },
        },
      ],
    });
    const code = result.outputFiles[0]?.text ?? '';
    const wrapped = `(function (require, module, exports, ${NAMES.join(', ')}) {${code}\n})`;
    return new Program(vm.runInThisContext(wrapped, { filename: 'package.js' }) as Instance);
  }

  /** The package in a process of its own. */
  start(actor: Actor): Package {
    const names = namesOf(actor);
    const module = { exports: {} };
    this.instantiate(require, module, module.exports, ...NAMES.map((name) => names[name]));
    return module.exports as Package;
  }
}

function namesOf(actor: Actor): Names {
  class SimulatedDate extends Date {
    constructor(...given: readonly unknown[]) {
      if (given.length === 0) super(actor.wall());
      else super(...(given as []));
    }
    static override now(): number {
      return actor.wall();
    }
  }
  const own = {
    performance: { now: () => actor.look(), timeOrigin: actor.timeOrigin },
    Date: SimulatedDate,
    Math: Object.assign(Object.create(Math) as object, { random: () => actor.random.next() }),
    setTimeout: (callback: () => void, time?: number) => actor.setTimer(callback, time),
    clearTimeout: actor.clearTimer.bind(actor),
    setInterval: (callback: () => void, time: number) => actor.setRepeatingTimer(callback, time),
    clearInterval: actor.clearTimer.bind(actor),
    setImmediate: (callback: () => void) => actor.afterInput(callback),
    clearImmediate: actor.clearTimer.bind(actor),
    process: Object.create(process, { pid: { value: actor.index } }) as object,
  };
  // Defined and not assigned: an assignment would reach the real ones, which are accessors.
  const given = { ...own, simulatedActor: actor, [SCOPES]: scopes };
  const global = Object.create(globalThis, Object.getOwnPropertyDescriptors(given)) as object;
  return { ...own, globalThis: global };
}
