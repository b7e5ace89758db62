import { assertKnownOptions } from '../client/validation.js';
import { cureOf, timeOf } from '../api/duration.js';
import { LockConfigError } from '../api/errors.js';
import type { LockBoardOptions, ResolvedBoardOptions } from './lock-board.options.js';

const OPTIONS: readonly (keyof LockBoardOptions)[] = [
  'path',
  'instances',
  'readOnly',
  'guards',
  'imports',
  'actor',
  'interval',
  'limit',
  'maxViewers',
];

/** The shortest pause between two looks at the store, ms. */
const SHORTEST = 200;
const MOST = 10_000;

/** @throws LockConfigError for an unknown option, for a wrong value, and for writing without a guard */
export function resolveBoardOptions(options: LockBoardOptions): ResolvedBoardOptions {
  assertKnownOptions(options, OPTIONS, 'LockBoardModule.forRoot');
  const { readOnly = true, guards = [], path = 'locks', instances = ['default'] } = options;
  const { limit = 1_000, maxViewers = 100, interval: pause = 1_000 } = options;
  assertPath(path);
  if (typeof readOnly !== 'boolean')
    throw new LockConfigError('readOnly', 'must be true or false', { value: readOnly });
  assertInstances(instances);
  assertGuards(guards);
  if (!readOnly && guards.length === 0) {
    const rule =
      'false needs a guard: viewers could take any lock away; give guards: [ … ] that let only operators in';
    throw new LockConfigError('readOnly', rule, { value: readOnly });
  }
  if (options.actor !== undefined && typeof options.actor !== 'function')
    throw new LockConfigError('actor', 'must be a function of the request', { value: options.actor });
  if (options.imports !== undefined && !Array.isArray(options.imports))
    throw new LockConfigError('imports', 'must be an array of modules', { value: options.imports });
  assertNumber('limit', limit);
  assertNumber('maxViewers', maxViewers);
  const interval = timeOf('interval', pause, { least: SHORTEST });
  const { actor, imports } = options;
  return { path, instances, readOnly, guards, limit, maxViewers, interval, ...definedOf({ actor, imports }) };
}

/** Others are served by one platform only, or can be asked for by no browser. */
const SEGMENT = /^:?[\w.~@-]+$/;

function assertPath(path: unknown): void {
  const isSegment = (text: string) => SEGMENT.test(text) && text !== '.' && text !== '..';
  if (
    typeof path === 'string' &&
    path
      .replace(/^\/|\/$/g, '')
      .split('/')
      .every(isSegment)
  )
    return;
  const rule = 'must be a path below the root, such as locks, of letters, digits and . _ ~ @ -';
  throw new LockConfigError('path', rule, { value: path });
}

function assertInstances(instances: unknown): void {
  const isName = (name: unknown) => typeof name === 'string' && name.trim() !== '';
  const isList = Array.isArray(instances) && instances.length > 0 && instances.every(isName);
  if (!isList || new Set(instances).size < instances.length) {
    const rule = "must be different names of LockServices; 'default' is the one without a name";
    throw new LockConfigError('instances', rule, { value: instances });
  }
}

function assertNumber(option: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= MOST) return;
  throw new LockConfigError(option, `must be a whole number from 1 to ${String(MOST)}${cureOf(value)}`, {
    value,
  });
}

function assertGuards(guards: unknown): void {
  // Without the method a guard may be passed over in silence.
  const isGuard = (guard: unknown) => {
    const methods: unknown = typeof guard === 'function' ? guard.prototype : guard;
    return typeof (methods as { canActivate?: unknown } | null | undefined)?.canActivate === 'function';
  };
  if (!Array.isArray(guards) || !guards.every(isGuard))
    throw new LockConfigError('guards', 'must be guards: classes, or objects with canActivate()', {
      value: guards,
    });
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the properties that are undefined. */
const definedOf = <T extends object>(values: T): Defined<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>;
