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
import { Actor, type SimulatedTimer } from './actor.js';
import { exchangeable, type Kept } from './exchangeable.js';
import { scopes } from './scopes.js';
import { World } from './world.js';

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

/** The one instance of the package, as its code finds it. */
interface Instance {
  /** The process that runs now. */
  actor: Actor;
  readonly kept: Kept[];
}

/** What the modules of a process keep while another one runs. */
interface Process {
  readonly actor: Actor;
  kept: (readonly unknown[])[];
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
  export const idle = (timer) => timer.unref();
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
    const names = namesOf(instance);
    instantiate(require, module, module.exports, ...NAMES.map((name) => names[name]));
    this.module = module.exports as Package;
    this.current = { actor: nobody, kept: [] };
  }

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
  instance.kept.push({
    renew: () => {
      for (const symbol of Object.getOwnPropertySymbols(global))
        if (symbol !== SCOPES) Reflect.deleteProperty(global, symbol);
    },
    take: () => [],
    put: () => undefined,
  });
  return { ...own, globalThis: global };
}
