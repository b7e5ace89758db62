import { DEFAULTS } from '../api/defaults.js';
import { hostname } from 'node:os';
import { isObject, LOCATIONS, locationOf } from './location-validation.js';
import {
  assertKnownOptions,
  assertMaxWaiting,
  assertSwitch,
  leaseTimeOf,
  type ModuleTimes,
} from '../client/validation.js';
import { cureOf, type Duration, timeOf } from '../api/duration.js';
import { LockConfigError } from '../api/errors.js';
import { isLockConfigError } from '../api/error-guards.js';
import { assertMethodOptions, PRESET_OPTIONS } from './method-validation.js';
import {
  type LockModuleAsyncOptions,
  type LockModuleOptions,
  type LockOptionsFactory,
  type PresetOptions,
} from '../api/options.js';
import { type ResolvedLockOptions } from '../api/resolved-options.js';
import { inQuotes } from '../runtime/text.js';
import { assertPrefix } from '../store/prefix.js';

const KNOWN: readonly string[] = [
  ...LOCATIONS,
  'name',
  'label',
  'isGlobal',
  'keyPrefix',
  'leaseTime',
  'waitTime',
  'maxWaitTime',
  'maxHoldTime',
  'localHandoff',
  'maxWaiting',
  'failFast',
  'reentrant',
  'lockOrder',
  'deadlock',
  'longWaitTime',
  'longHoldTime',
  'silencedWarnings',
  'presets',
  'enabled',
  'replication',
];

const KNOWN_ASYNC: readonly string[] = [
  'name',
  'isGlobal',
  'imports',
  'inject',
  'useFactory',
  'useClass',
  'useExisting',
];

/** Fewer than the fencing tokens that a script reserves for hand-offs: see STRIDE in plain.include.lua. */
const MOST_HANDOFFS = 999;

/**
 * Checks the module's options at boot and fills the defaults in.
 * @throws LockConfigError with the option, the rule and the value
 */
export function resolveOptions(options: LockModuleOptions): ResolvedLockOptions {
  assertNoClientOption(options);
  // A misspelt maxHoldTime must not count as "no maximum".
  assertKnownOptions(options, KNOWN, 'LockModule');
  const location = locationOf(options);
  assertInstanceName(options.name);
  assertGlobal(options.isGlobal);
  const {
    keyPrefix = DEFAULTS.keyPrefix,
    localHandoff = DEFAULTS.localHandoff,
    leaseTime: givenLease = DEFAULTS.leaseTime,
  } = options;
  assertPrefix('keyPrefix', keyPrefix);
  const leaseTime = leaseTimeOf(givenLease);
  const maxWaitTime = limitOf('maxWaitTime', options, 0);
  const waitTime = Math.min(limitOf('waitTime', options, 0), maxWaitTime);
  const maxHoldTime = limitOf('maxHoldTime', options);
  if (!Number.isSafeInteger(localHandoff) || localHandoff < 0 || localHandoff > MOST_HANDOFFS) {
    const rule = `must be a whole number from 0 to ${String(MOST_HANDOFFS)}${cureOf(localHandoff)}`;
    throw new LockConfigError('localHandoff', rule, { value: localHandoff });
  }
  const { maxWaiting = DEFAULTS.maxWaiting, failFast = DEFAULTS.failFast } = options;
  assertMaxWaiting(maxWaiting);
  assertSwitch('failFast', failFast);
  const { reentrant = DEFAULTS.reentrant } = options;
  assertSwitch('reentrant', reentrant);
  const longWaitTime = limitOf('longWaitTime', options);
  const longHoldTime = limitOf('longHoldTime', options);
  const { lockOrder = DEFAULTS.lockOrder, deadlock = DEFAULTS.deadlock } = options;
  assertOneOf('lockOrder', lockOrder, ['warn', 'throw', 'off']);
  assertOneOf('deadlock', deadlock, ['break', 'report', 'off']);
  const { silencedWarnings = [] } = options;
  assertCodes(silencedWarnings);
  const { enabled = DEFAULTS.enabled } = options;
  assertSwitch('enabled', enabled);
  const presets = presetsOf(options, { leaseTime, maxHoldTime });
  const { label = `${hostname().slice(0, 64)}:${String(process.pid)}` } = options;
  assertLabel(label);
  assertReplication(options);
  return Object.freeze({
    location,
    keyPrefix,
    leaseTime,
    waitTime,
    maxWaitTime,
    maxHoldTime,
    localHandoff,
    maxWaiting,
    failFast,
    reentrant,
    silencedWarnings,
    enabled,
    instance: options.name,
    longWaitTime,
    longHoldTime,
    lockOrder,
    deadlock,
    label,
    presets,
  });
}

function assertOneOf(option: string, value: unknown, values: readonly string[]): void {
  if (values.includes(value as string)) return;
  throw new LockConfigError(option, `must be ${values.join(', ')}`, { value });
}

/** A time that may be without an end. Only an absent one has its default: null is refused like any other value. */
function limitOf(
  option: 'waitTime' | 'maxWaitTime' | 'maxHoldTime' | 'longWaitTime' | 'longHoldTime',
  { [option]: value = DEFAULTS[option] }: LockModuleOptions & { maxWaitTime?: Duration | undefined },
  least = 1,
): number {
  return timeOf(option, value, { least, unbounded: true });
}

/**
 * Checks the options of forRootAsync, before its factory is called.
 * @throws LockConfigError with the option, the rule and the value
 */
export function assertAsyncOptions(options: LockModuleAsyncOptions): void {
  // An option that the factory has to give would be ignored silently here.
  assertKnownOptions(options, KNOWN_ASYNC, 'forRootAsync');
  assertInstanceName(options.name);
  assertGlobal(options.isGlobal);
  const { useFactory, useClass, useExisting, inject = [] } = options;
  if ([useFactory, useClass, useExisting].filter((way) => way !== undefined).length !== 1) {
    const rule = 'forRootAsync takes exactly one of them';
    throw new LockConfigError('useFactory / useClass / useExisting', rule);
  }
  if (useFactory !== undefined && typeof useFactory !== 'function') {
    throw new LockConfigError('useFactory', 'must be a function', { value: useFactory });
  }
  if (useFactory === undefined && inject.length > 0) {
    throw new LockConfigError(
      'inject',
      'gives useFactory its arguments; a class injects its own by its constructor',
    );
  }
}

/**
 * Checks the factory's result for options that belong beside the factory: the module has been made by then. A repetition of
 * the same value is accepted.
 * @throws LockConfigError with the option and the value
 */
export function assertFactoryOptions(
  made: LockModuleOptions,
  { name, isGlobal = DEFAULTS.isGlobal }: Pick<LockModuleAsyncOptions, 'name' | 'isGlobal'>,
): void {
  if (!isObject(made)) return;
  for (const [option, value] of [
    ['name', name],
    ['isGlobal', isGlobal],
  ] as const) {
    const late = made[option];
    if (late === undefined || late === value) continue;
    throw new LockConfigError(option, 'belongs beside the factory of forRootAsync, which gives it too late', {
      value: late,
    });
  }
}

/** @throws LockConfigError when what Nest has made of `useClass` or `useExisting` gives no options */
export function assertOptionsFactory(maker: LockOptionsFactory): void {
  if (typeof (maker as Partial<LockOptionsFactory> | null | undefined)?.createLockOptions !== 'function') {
    const rule = 'must have the method createLockOptions of a LockOptionsFactory';
    throw new LockConfigError('useClass / useExisting', rule, { value: maker });
  }
}

function assertGlobal(isGlobal: unknown): void {
  if (isGlobal !== undefined) assertSwitch('isGlobal', isGlobal);
}

/** @throws LockConfigError when it is not undefined and not a name */
export function assertInstanceName(name: unknown, option = 'name'): asserts name is string | undefined {
  if (name !== undefined && (typeof name !== 'string' || name.trim() === '')) {
    throw new LockConfigError(option, 'must be a non-empty string, or absent for the default instance', {
      value: name,
    });
  }
}

/** Options of a client in the place of the module's options. */
const CLIENT_OPTIONS = [
  'host',
  'port',
  'url',
  'path',
  'username',
  'password',
  'db',
  'tls',
  'sentinels',
  'cluster',
];

/**
 * Nest makes a class that stands in `providers` by itself, without options.
 * @throws LockConfigError
 */
export function assertGiven(options: unknown): void {
  if (options !== undefined) return;
  const rule = 'must be an object; LockModule gives LockService its options, so leave it out of providers';
  throw new LockConfigError('options', rule, { value: options });
}

function assertNoClientOption(options: unknown): void {
  if (!isObject(options)) return;
  const option = CLIENT_OPTIONS.find((option) => option in options);
  if (option === undefined) return;
  const way = option === 'url' ? "connection: 'redis://…'" : `connection: { ${option}: … }`;
  throw new LockConfigError(option, `is an option of the client; write ${way}`);
}

const MAX_LABEL = 100;

function assertLabel(label: unknown): void {
  if (
    typeof label === 'string' &&
    /^[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*$/u.test(label) &&
    label.length <= MAX_LABEL
  )
    return;
  const rule = `must be a text of at most ${String(MAX_LABEL)} characters, on one line`;
  throw new LockConfigError('label', rule, { value: label });
}

function presetsOf(
  { presets = {} }: LockModuleOptions,
  times: ModuleTimes,
): ReadonlyMap<string, PresetOptions> {
  if (!isObject(presets) || Symbol.iterator in presets) {
    throw new LockConfigError('presets', 'must be an object of options by name', { value: presets });
  }
  const entries = Object.entries(presets);
  for (const [name, options] of entries) {
    try {
      assertMethodOptions(options, PRESET_OPTIONS, 'a preset', times);
    } catch (error) {
      if (!isLockConfigError(error)) throw error;
      throw new LockConfigError(`presets.${inQuotes(name)}`, error.message);
    }
  }
  return new Map(entries.map(([name, options]) => [name, Object.freeze({ ...options })]));
}

function assertCodes(silencedWarnings: unknown): void {
  const isCode = (code: unknown) => typeof code === 'string' && /^[a-z]+(?:-[a-z]+)*$/.test(code);
  if (Array.isArray(silencedWarnings) && silencedWarnings.every(isCode)) return;
  const rule = "must be an array of codes of warnings, such as ['command-timeout']";
  throw new LockConfigError('silencedWarnings', rule, { value: silencedWarnings });
}

function assertReplication({ replication, connection }: LockModuleOptions): void {
  if (replication === undefined) return;
  if (!isObject(replication)) {
    throw new LockConfigError('replication', 'must be { replicas, timeout }', { value: replication });
  }
  if (connection === undefined) {
    throw new LockConfigError(
      'replication',
      'goes with connection: nothing else has replicas that could be asked',
    );
  }
  assertKnownOptions(replication, ['replicas', 'timeout'], 'replication');
  const { replicas } = replication;
  if (!Number.isSafeInteger(replicas) || replicas < 1) {
    const rule = `must be a whole number from 1 on${cureOf(replicas)}`;
    throw new LockConfigError('replication.replicas', rule, { value: replicas });
  }
}
