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

/** Others are served by one platform only, or can be asked for by no browser. */
const SEGMENT = /^:?[\w.~@-]+$/;

/** @throws LockConfigError for an unknown option, for a wrong value, and for writing without a guard */
export function resolveBoardOptions(options: LockBoardOptions): ResolvedBoardOptions {
  assertKnownOptions(options, OPTIONS, 'LockBoardModule.forRoot');
  const { path = 'locks', instances = ['default'], readOnly = true, guards = [], imports = [] } = options;
  const { actor = () => null, limit = 1_000, maxViewers = 100, interval: pause = 1_000 } = options;
  const segments = typeof path === 'string' ? path.replace(/^\/|\/$/g, '').split('/') : [''];
  const isPath = segments.every((text) => SEGMENT.test(text) && text !== '.' && text !== '..');
  const below = 'must be a path below the root, such as locks, of letters, digits and . _ ~ @ -';
  assert(isPath, 'path', path, below);
  assert(typeof readOnly === 'boolean', 'readOnly', readOnly, 'must be true or false');
  const isList = Array.isArray(instances) && instances.length > 0 && instances.every(isName);
  const areInstances = isList && new Set(instances).size === instances.length;
  const names = "must be different names of LockServices; 'default' is the one without a name";
  assert(areInstances, 'instances', instances, names);
  const areGuards = Array.isArray(guards) && guards.every(isGuard);
  assert(areGuards, 'guards', guards, 'must be guards: classes, or objects with canActivate()');
  const open =
    'false needs a guard: viewers could take any lock away; give guards: [ … ] that let only operators in';
  assert(readOnly || guards.length > 0, 'readOnly', readOnly, open);
  assert(typeof actor === 'function', 'actor', actor, 'must be a function of the request');
  assert(Array.isArray(imports), 'imports', imports, 'must be an array of modules');
  for (const [option, value] of Object.entries({ limit, maxViewers })) {
    const isCount = Number.isSafeInteger(value) && value >= 1 && value <= MOST;
    assert(isCount, option, value, `must be a whole number from 1 to ${String(MOST)}${cureOf(value)}`);
  }
  const interval = timeOf('interval', pause, { least: SHORTEST });
  return { path, instances, readOnly, guards, imports, actor, interval, limit, maxViewers };
}

function assert(isRight: boolean, option: string, value: unknown, rule: string): void {
  if (!isRight) throw new LockConfigError(option, rule, { value });
}

const isName = (name: unknown) => typeof name === 'string' && name.trim() !== '';

/** Without the method a guard may be passed over in silence. */
function isGuard(guard: unknown): boolean {
  const methods: unknown = typeof guard === 'function' ? guard.prototype : guard;
  return typeof (methods as { canActivate?: unknown } | null | undefined)?.canActivate === 'function';
}
