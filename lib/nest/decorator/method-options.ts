import { isThenable } from '../../client/holding/late-result.js';
import { assertSignal } from '../../client/validation.js';
import { LockConfigError } from '../../api/errors.js';
import { assertMethodOptions, CALL_OPTIONS } from '../../module/method-validation.js';
import type { AcquireOptions, CallOptions, DistributedLockOptions } from '../../api/options.js';
import { assertInstanceName } from '../../module/options-validation.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import { inQuotes } from '../../runtime/text.js';

/** Gives the options of one call, or the name of a preset; `this` in it is the object whose method is called. */
export type CallOptionsMaker<Args extends readonly unknown[]> = (...args: Args) => CallOptions | string;

/** Options, the name of a preset, or a function of the call that gives either. */
export type MethodOptions<Args extends readonly unknown[]> =
  DistributedLockOptions | string | CallOptionsMaker<Args>;

/** The options of one call: what `using` gets, and how the wrapper handles the outcome. */
export interface ResolvedCall extends Pick<DistributedLockOptions, 'onBusy' | 'onLost'> {
  readonly acquire: AcquireOptions;
}

/** The options of a locked method, as declared. */
export interface DeclaredOptions extends Pick<DistributedLockOptions, 'instance' | 'returns'> {
  /**
   * For the moment when Nest injects the service.
   * @returns the kind that is asked for, if it is known by then
   * @throws LockConfigError if the module has no such preset
   */
  kindWith(service: LockService): AcquireOptions['kind'];
  /** They have a label, or may get one from a preset or a function. */
  readonly isLabelled: boolean;
  /** @throws LockConfigError if a function of the call gives something else than options */
  resolve(service: LockService, args: readonly unknown[], self?: object): ResolvedCall;
}

const DECLARED_OPTIONS: readonly string[] = [...CALL_OPTIONS, 'instance', 'returns'];

interface CompileSettings {
  /** The options that there are. */
  readonly known?: readonly string[];
  /** The label of the locks if the options have none. */
  readonly label?: string | undefined;
}

/**
 * Compiles the options once, at decoration.
 * @param owner what takes them, for messages
 * @throws LockConfigError with the option, the rule and the value
 */
export function compileOptions(
  given: MethodOptions<never[]>,
  owner: string,
  { known = DECLARED_OPTIONS, label }: CompileSettings = {},
): DeclaredOptions {
  if (typeof given === 'function') {
    return {
      kindWith: () => undefined,
      isLabelled: true,
      resolve(service, args, self) {
        const called = asOptions(
          givenAtOnce('options', Reflect.apply(given, self, args) as CallOptions | string),
        );
        assertMethodOptions(called, CALL_OPTIONS, 'a call');
        return split(withPreset(called, service), args, label);
      },
    };
  }
  const declared: DistributedLockOptions = asOptions(given);
  assertMethodOptions(declared, known, owner);
  const { instance, returns, preset, ...options } = declared;
  assertInstanceName(instance, 'instance');
  const constant =
    preset === undefined && typeof options.signal !== 'function' ? split(options, [], label) : undefined;
  const refined = (service: LockService) => withPreset({ ...options, preset }, service);
  return {
    instance,
    returns,
    kindWith: (service) => refined(service).kind,
    isLabelled: options.label !== undefined || preset !== undefined,
    resolve: (service, args) => constant ?? split(refined(service), args, label),
  };
}

const asOptions = <O extends CallOptions>(given: O | string): O | CallOptions =>
  typeof given === 'string' ? { preset: given } : given;

/**
 * A Promise has no options of its own, so it would count as none. Its rejection is of no use to the application.
 * @throws LockConfigError
 */
export function givenAtOnce<O>(option: string, given: O): O {
  if (!isThenable(given)) return given;
  Promise.resolve(given).catch(() => undefined);
  throw new LockConfigError(option, 'a function must give it at once, and no Promise of it');
}

/** Options beside the name of a preset come first. */
function withPreset({ preset: name, ...options }: CallOptions, service: LockService): CallOptions {
  if (name === undefined) return options;
  const presets = stateOf(service)?.settings.presets;
  // A double of the service has no presets.
  if (presets === undefined) return options;
  const preset = presets.get(name);
  if (preset === undefined) {
    const all = presets.size === 0 ? 'none' : [...presets.keys()].join(', ');
    const rule = `"${inQuotes(name)}" is not among the presets of the module (there are: ${all})`;
    throw new LockConfigError('preset', rule);
  }
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...preset, ...Object.fromEntries(given) };
}

function split(
  { onBusy, onLost, kind, signal, label: given, ...acquire }: CallOptions,
  args: readonly unknown[],
  ofKey: string | undefined,
): ResolvedCall {
  const label = given ?? ofKey;
  const signalOfCall =
    typeof signal === 'function' ? givenAtOnce('signal', signal(...(args as never[]))) : signal;
  assertSignal(signalOfCall);
  return {
    onBusy,
    onLost,
    // Only if it differs: a service that has been made by hand for a test may know fewer options.
    acquire: {
      ...acquire,
      ...(label === undefined ? {} : { label }),
      ...(signalOfCall === undefined ? {} : { signal: signalOfCall }),
      ...(kind === undefined || kind === 'lock' ? {} : { kind }),
    },
  };
}
