import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import vm from 'node:vm';
import { build } from 'esbuild';
import { patched, type Patch } from '../../chaos/variants/variant.js';
import { renewable } from './renewable.js';
import type { AbstractConnector, Redis } from 'ioredis';
import type { LockService, LockUnavailableError } from '../../../../lib/index.js';
import type { MemoryLockStore } from '../../../../lib/stores/memory/memory-lock-store.js';
import type { QuorumLockStore } from '../../../../lib/stores/quorum/quorum-lock-store.js';
import type { Actor, SimulatedTimer } from './actor.js';
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
type Instantiate = (...given: unknown[]) => void;

/** An instance of the package, with the process that runs it. */
interface Instance {
  actor: Actor;
  readonly module: { readonly exports: unknown };
  /** Makes what its modules remember as it is when they are loaded. */
  readonly renewals: (() => void)[];
}

/** The seam: all that the package takes from the runtime, as an actor gives it. */
const SEAM = `
  const instance = globalThis.simulatedInstance;
  export const monotonicTime = () => instance.actor.look();
  export const timeOrigin = () => instance.actor.timeOrigin;
  export const wallTime = () => instance.actor.wall();
  export const processUptime = () => instance.actor.monotonic() / 1000;
  export const machineUptime = () => instance.actor.monotonic() / 1000;
  export const setTimer = (callback, time) => instance.actor.setTimer(callback, time);
  export const clearTimer = (timer) => instance.actor.clearTimer(timer);
  export const setRepeatingTimer = (callback, time) => instance.actor.setRepeatingTimer(callback, time);
  export const clearRepeatingTimer = (timer) => instance.actor.clearTimer(timer);
  export const sleep = (time) => instance.actor.sleep(time);
  export const afterInput = (callback) => { instance.actor.afterInput(callback); };
  export const afterStep = (callback) => { queueMicrotask(callback); };
  export const atEndOfTurn = (callback) => { process.nextTick(callback); };
  export const random = () => instance.actor.random.next();
  export const uuid = () => instance.actor.uuid();
  export const timersAreFaked = () => false;
  export const timersAreLegacy = () => false;`;

/** Where the package finds the storage of its scopes. */
const SCOPES = Symbol.for('nestjs-distributed-lock.scopes');

/**
 * The built package as one script, with a passage replaced where it is to be broken. Each process of a run has an instance of
 * its own. The next run uses the instances again, as if they had just been loaded: what V8 has learned of a function and of
 * the objects that it meets is worth more than half of the time.
 */
export class Program {
  private readonly instances: Instance[] = [];
  private used = 0;

  private constructor(private readonly script: vm.Script) {}

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
              return { contents: renewable(contents ?? readFileSync(path, 'utf8')), loader: 'js' };
            });
          },
        },
      ],
    });
    const code = result.outputFiles[0]?.text ?? '';
    const wrapped = `(function (require, module, exports, ${NAMES.join(', ')}) {${code}\n})`;
    return new Program(new vm.Script(wrapped, { filename: 'package.js' }));
  }

  /** All processes are over. */
  restart(): void {
    this.used = 0;
  }

  /** The package in a process of its own. */
  start(actor: Actor): Package {
    const known = this.instances[this.used++];
    if (known === undefined) {
      const made = this.instanceFor(actor);
      this.instances.push(made);
      return made.module.exports as Package;
    }
    known.actor = actor;
    for (const renew of known.renewals) renew();
    return known.module.exports as Package;
  }

  /** Evaluates the script anew: V8 learns for each instance apart, because the classes of each are others. */
  private instanceFor(actor: Actor): Instance {
    const instance: Instance = { actor, module: { exports: {} }, renewals: [] };
    const names = namesOf(instance);
    const instantiate = this.script.runInThisContext() as Instantiate;
    instantiate(require, instance.module, instance.module.exports, ...NAMES.map((name) => names[name]));
    return instance;
  }
}

function namesOf(instance: Instance): Names {
  class SimulatedDate extends Date {
    constructor(...given: readonly unknown[]) {
      if (given.length === 0) super(instance.actor.wall());
      else super(...(given as []));
    }
    static override now(): number {
      return instance.actor.wall();
    }
  }
  const clearTimer = (timer: SimulatedTimer | undefined) => {
    instance.actor.clearTimer(timer);
  };
  const own = {
    performance: {
      now: () => instance.actor.look(),
      get timeOrigin() {
        return instance.actor.timeOrigin;
      },
    },
    Date: SimulatedDate,
    Math: Object.assign(Object.create(Math) as object, { random: () => instance.actor.random.next() }),
    setTimeout: (callback: () => void, time?: number) => instance.actor.setTimer(callback, time),
    clearTimeout: clearTimer,
    setInterval: (callback: () => void, time: number) => instance.actor.setRepeatingTimer(callback, time),
    clearInterval: clearTimer,
    setImmediate: (callback: () => void) => instance.actor.afterInput(callback),
    clearImmediate: clearTimer,
    process: Object.create(process, { pid: { get: () => instance.actor.index } }) as object,
  };
  // Defined and not assigned: an assignment would reach the real ones, which are accessors.
  const given = { ...own, simulatedInstance: instance, [SCOPES]: scopes };
  const global = Object.create(globalThis, Object.getOwnPropertyDescriptors(given)) as object;
  instance.renewals.push(() => {
    for (const kept of Object.getOwnPropertySymbols(global))
      if (kept !== SCOPES) Reflect.deleteProperty(global, kept);
  });
  return { ...own, globalThis: global };
}
