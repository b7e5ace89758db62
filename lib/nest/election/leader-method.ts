import type { ModulesContainer } from '@nestjs/core';
import { assertKnownOptions, assertName, leaseTimeOf } from '../../client/validation.js';
import { LockConfigError } from '../../api/errors.js';
import type { Duration } from '../../api/duration.js';
import { assertInstanceName } from '../../module/options-validation.js';
import type { LockService } from '../../module/lock-service.js';
import type { Term } from '../../api/election.js';
import { isGenerator } from '../decorator/locked-method.js';
import { locksPassThrough } from '../decorator/pass-through.js';
import { serviceOf, serviceProperty } from '../service/service-property.js';
import { assertNotStandard } from '../decorator/standard-decorator.js';
import { campaignsOf } from './campaigns.js';

/** How a method takes part in an election. */
export interface LeaderOptions {
  /**
   * How long a leader that died is still the leader. The decorators of one election must agree on it.
   * @default the module's `leaseTime`
   */
  leaseTime?: Duration | undefined;
  /** The name of the LockService to use. @default the unnamed one */
  instance?: string | undefined;
}

/** A method with `@OnLeader`, as its class declares it. */
interface LeaderMethod {
  readonly property: string | symbol;
  readonly election: string;
  readonly options: LeaderOptions;
}

const METHODS = 'nestjs-distributed-lock:on-leader';

/**
 * The method that a decorator has been put on.
 * @throws LockConfigError when it is no instance method, or a generator
 */
export function decoratedMethod(
  decorator: string,
  target: object,
  property: string | symbol | undefined,
  descriptor: PropertyDescriptor | undefined,
): { readonly declared: string; readonly method: (...args: unknown[]) => unknown } {
  assertNotStandard(property, decorator);
  const className = (typeof target === 'function' ? (target as { name: string }) : target.constructor).name;
  const declared = `${decorator} on ${className}.${String(property)}`;
  const method: unknown = descriptor?.value;
  if (typeof target === 'function' || typeof method !== 'function') {
    throw new LockConfigError(declared, 'goes on an instance method');
  }
  if (isGenerator(method)) {
    const rule =
      'cannot go on a generator, which runs after its call has ended: decorate the method that iterates it';
    throw new LockConfigError(declared, rule);
  }
  return { declared, method: method as (...args: unknown[]) => unknown };
}

/** @throws LockConfigError with the decorator and the rule */
export function assertLeaderOptions(declared: string, election: unknown, options: LeaderOptions): void {
  try {
    assertName(election);
    assertKnownOptions(options, ['leaseTime', 'instance'], 'the decorator');
    if (options.leaseTime !== undefined) leaseTimeOf(options.leaseTime);
    assertInstanceName(options.instance, 'instance');
  } catch (error) {
    throw new LockConfigError(declared, (error as Error).message);
  }
}

/** Notes the method with its class, for the boot. */
export function rememberLeaderMethod(prototype: object, method: LeaderMethod): void {
  const own = (Reflect.getOwnMetadata(METHODS, prototype) ?? []) as readonly LeaderMethod[];
  Reflect.defineMetadata(METHODS, [...own, method], prototype);
}

/** The methods of a class and of its base classes, each once for each election. */
function leaderMethodsOf(prototype: unknown): readonly LeaderMethod[] {
  const found = new Map<string, LeaderMethod>();
  for (let at = prototype; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
    for (const method of (Reflect.getOwnMetadata(METHODS, at) ?? []) as readonly LeaderMethod[]) {
      const key = `${String(method.property)} ${method.election}`;
      if (!found.has(key)) found.set(key, method);
    }
  }
  return [...found.values()];
}

/**
 * Finds the methods with `@OnLeader` of all objects of the application that have got this service, guards and the like
 * included.
 * @throws LockConfigError for a class of which Nest makes instances on demand: its method would have no instance to run on; and
 *   for an object that Nest has not made, as by a factory: it has no service
 */
export function addLeaderMethods(modules: ModulesContainer, service: LockService): void {
  const seen = new Set<object>();
  for (const { providers, controllers, injectables } of modules.values()) {
    for (const wrapper of [...providers.values(), ...controllers.values(), ...injectables.values()]) {
      const leader = leaderOf(wrapper);
      if (leader === undefined || seen.has(leader.instance)) continue;
      seen.add(leader.instance);
      for (const method of leader.methods) addTo(service, leader, method);
    }
  }
}

type Wrapper =
  ModulesContainer extends Map<string, { readonly providers: Map<unknown, infer W> }> ? W : never;

/** An object that has methods with `@OnLeader`. */
interface Leader {
  readonly instance: Record<string | symbol, unknown>;
  readonly methods: readonly LeaderMethod[];
  /** Nest has made it from its class, and has given it its services. Else a factory has made it. */
  readonly isFromClass: boolean;
}

/** @returns undefined if there is none, also if Nest has not made it */
function leaderOf(wrapper: Wrapper): Leader | undefined {
  const { metatype } = wrapper;
  const instance = wrapper.instance as Leader['instance'] | undefined;
  const declared = leaderMethodsOf(typeof metatype === 'function' ? metatype.prototype : undefined);
  const isFromClass = declared.length > 0;
  if (isFromClass && (!wrapper.isDependencyTreeStatic() || wrapper.isTransient))
    throw onDemand(metatype, declared);
  const methods = isFromClass ? declared : leaderMethodsOf(prototypeOf(instance));
  return instance === undefined || methods.length === 0 ? undefined : { instance, methods, isFromClass };
}

/** Lets the method lead if the object has got this service. */
function addTo(service: LockService, { instance, isFromClass }: Leader, method: LeaderMethod): void {
  const { property, election, options } = method;
  const title = titleOf(instance.constructor, property);
  const key = serviceProperty(options.instance);
  if (!isFromClass && locksPassThrough()) return;
  if ((isFromClass ? instance[key] : serviceOf(instance, key, title, '@OnLeader')) !== service) return;
  const run = (term: Term) => (instance[property] as (term: Term) => unknown)(term);
  campaignsOf(service).of(election, options).add({ title, run });
}

/** The class of a factory's result. It may be a proxy that throws when it is touched outside of a request. */
function prototypeOf(made: unknown): unknown {
  try {
    return typeof made === 'object' && made !== null ? Object.getPrototypeOf(made) : undefined;
  } catch {
    return undefined;
  }
}

const titleOf = (type: unknown, property: string | symbol): string =>
  `${(type as { name: string }).name}.${String(property)}`;

const onDemand = (type: unknown, [method]: readonly LeaderMethod[]): LockConfigError =>
  new LockConfigError(
    `@OnLeader on ${titleOf(type, method?.property ?? '')}`,
    'needs a class of which Nest makes one instance at boot: this one, or what it injects, is request-scoped or transient',
  );
