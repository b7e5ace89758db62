import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';
import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import type { Duration } from './duration.js';
import type { LockTimeoutError } from './errors.js';
import type { LockStore } from '../store/lock-store.js';

/**
 * A Redis deployment.
 * - a URL: `redis://` or, with TLS, `rediss://`; user name and password percent-encoded, the path a database, and behind
 *   `?` any of `connectTimeout`, `connectionName`, `db`, `family`, `keepAlive`, `keyPrefix`, `noDelay`, `password`,
 *   `protocol`, `username`. Anything else is LockConfigError
 * - ioredis options, Sentinel included. LockConfigError: texts where numbers belong (`port`, `db`, times), URLs as `host`,
 *   `path` or `name`, `tls` that is no object, `monitor`
 * - `{ cluster }`: some nodes of a cluster, and ioredis options of the whole. The other parts of a URL among the nodes
 *   apply to all nodes, unless `redisOptions` says otherwise
 * - a client of your own, which is used as it is and never closed; messages get a duplicate of it
 */
export type RedisConnection =
  string | RedisOptions | { cluster: ClusterNode[]; options?: ClusterOptions } | Redis | Cluster;

/** Options of {@link LockModule.forRoot}. Times are milliseconds, or texts such as `'30s'`. Exactly one of the first three names the Redis of the locks. */
export interface LockModuleOptions {
  /** One Redis deployment: a single server, Sentinel or Cluster. */
  connection?: RedisConnection | undefined;
  /** Three or more independent masters, an odd number: Redlock. */
  nodes?: RedisConnection[] | undefined;
  /** `'memory'`: this process only, for tests and development. Or a store of your own. */
  store?: 'memory' | LockStore | undefined;

  /** The name of a second, third… instance. Inject it with `@InjectLockService(name)`. */
  name?: string | undefined;
  /**
   * The name of this instance for other processes that ask for the holder of a lock: in `inspect`, in the messages of
   * errors and in the log. It is never sent to a client. At most 100 characters. @default '<hostname>:<pid>'
   */
  label?: string | undefined;
  /** Whether every module of the application sees the service without importing LockModule. @default true */
  isGlobal?: boolean | undefined;
  /**
   * The prefix of every lock's key. `''` shares names with Redisson. It must not contain `~ndl:`, which marks the keys
   * beside a lock, nor end in a part of that.
   * @default 'lock:'
   */
  keyPrefix?: string | undefined;
  /**
   * The lease of a lock that is taken without one. It is renewed every third of this time while the holder lives. After
   * this time the lock of a crashed process is free.
   * @default 30_000
   */
  leaseTime?: Duration | undefined;
  /** How long `acquire()` waits for a busy lock. Infinity is allowed. @default 10_000 */
  waitTime?: Duration | undefined;
  /**
   * The watchdog stops here, and the lease is lost in any case. `extend()` of such a lease beyond it is
   * refused with LockConfigError. A fixed lease has an end of its own, which `extend()` may move further. @default Infinity
   */
  maxHoldTime?: Duration | undefined;
  /**
   * How many times a plain lock may pass from one waiter of this process to the next without asking the store, before other
   * processes get their turn. Passing also ends a second after the store has granted the lock, or 3 ms after the grant if
   * another process waited then. Beside waiters of another library it passes once at most. 0 turns it off, 999 is the
   * most.
   * @default 16
   */
  localHandoff?: number | undefined;
  /**
   * How many callers of this process may wait for one name at the same time. A further caller gets LockTimeoutError at once,
   * with the reason `queue-full`. A caller waits from its request to its answer. Callers that do not wait are not counted,
   * and neither are callers that re-enter. A multi-lock is refused only when it is asked for, and then waits for one name
   * after the other. @default Infinity
   */
  maxWaiting?: number | undefined;
  /**
   * While the connection is known to be down, a caller gets LockUnavailableError at once. Otherwise it waits for `waitTime`
   * at most, because a connection is often back within that time, as after a failover. Callers that wait already go on
   * waiting. @default false
   */
  failFast?: boolean | undefined;
  /**
   * `false` makes each nested acquisition an owner of its own, which waits for the lock that is held around it: see
   * {@link AcquireOptions.reentrant}. @default true
   */
  reentrant?: boolean | undefined;
  /**
   * A caller that waits for longer than this is an event `waiting-long` and a log line. @default off
   */
  longWaitTime?: Duration | undefined;
  /**
   * A lock that is held for longer than this is an event `held-long` and a log line. @default off
   */
  longHoldTime?: Duration | undefined;
  /**
   * What happens when locks are taken under each other in two orders, so that callers can wait for each other: an event
   * `lock-order` and a log line, or LockConfigError at the call, before anything is sent. Locks of one label count as one, and
   * two of them under each other have no order. Calls with `waitTime: 0` cannot wait, and are not looked at. `throw` is for
   * tests. @default 'warn'
   */
  lockOrder?: 'warn' | 'throw' | 'off' | undefined;
  /**
   * What happens when callers that hold locks wait for each other: the one that began to wait last gets LockTimeoutError with
   * the reason `deadlock`, and the others go on; or all of them go on waiting. Either way each of them is an event `deadlock`
   * and a log line. @default 'break'
   */
  deadlock?: 'break' | 'report' | 'off' | undefined;
  /** The codes of warnings that are known and accepted: these are neither logged nor events, nor in `health()`. */
  silencedWarnings?: readonly string[] | undefined;
  /**
   * Options of locked methods under names of their own: `@DistributedLock(key, 'job')` has those of `presets.job`. `instance`,
   * `returns` and `preset` are not among them: LockConfigError.
   */
  presets?: Record<string, PresetOptions> | undefined;
  /**
   * `false` lets decorators and interceptors call their methods without a lock, as in an environment without Redis. A warning
   * says so at boot. `using`, `acquire` and the other methods of the service take locks as ever. @default true
   */
  enabled?: boolean | undefined;
  /** Lets an acquisition or a renewal count only when replicas have it, so that a failover does not lose the lock. */
  replication?: ReplicationOptions | undefined;
}

/**
 * How many replicas must have an acquisition before it counts. If fewer have it in time, or none is connected, the
 * acquisition is taken back and tried again within its wait time, then LockUnavailableError. Renewals count under the same
 * condition: otherwise a holder would believe in a prolongation that the next master does not have. So a lease without
 * confirmed renewals ends at its deadline, and is lost as `unreachable`. Hand-offs inside of this process need no
 * confirmation. Only with `connection`.
 *
 * It protects against as many failovers at once as there are confirmed replicas, if the next master is the replica that
 * has received the most: Sentinel and Cluster ensure that among replicas of equal priority.
 */
export interface ReplicationOptions {
  /** From 1 on. */
  replicas: number;
  /**
   * How long to wait for the replicas, ms. Other commands queue up behind it, so it has to be shorter than a command's
   * time, a sixth of `leaseTime` and 2 s at most. @default a quarter of a command's time: 500 with a lease of 30 s
   */
  timeout?: Duration | undefined;
}

/** For `useClass` and `useExisting`. */
export interface LockOptionsFactory {
  /** Called once, at boot. */
  createLockOptions(): LockFactoryOptions | Promise<LockFactoryOptions>;
}

/** The result of a factory: all options except those for the module itself. */
export type LockFactoryOptions = Omit<LockModuleOptions, 'name' | 'isGlobal'>;

/** Options of {@link LockModule.forRootAsync}. Exactly one of `useFactory`, `useClass` and `useExisting`. */
export interface LockModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>, Pick<LockModuleOptions, 'name' | 'isGlobal'> {
  /** The arguments of `useFactory`, in this order. Only with it. */
  inject?: (InjectionToken | OptionalFactoryDependency)[] | undefined;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- Nest passes what `inject` names
  useFactory?: ((...dependencies: any[]) => LockFactoryOptions | Promise<LockFactoryOptions>) | undefined;
  /** Made by Nest, as a provider of the module. */
  useClass?: Type<LockOptionsFactory> | undefined;
  /** A provider of one of `imports`, or a global one. */
  useExisting?: InjectionToken<LockOptionsFactory> | undefined;
}

/** How one acquisition is to be made. Times are milliseconds, or texts such as `'30s'`. */
export interface AcquireOptions {
  /**
   * The plain lock, the fair one, or a side of the read-write lock of that name. Only at methods of LockService and at
   * decorators: a lock that has been made has its kind, and refuses this option with LockConfigError. @default 'lock'
   */
  kind?: 'lock' | 'fair' | 'read' | 'write' | undefined;
  /**
   * How long to wait for a busy lock: 0 does not wait, Infinity waits for ever.
   * @default the module's `waitTime` for `acquire` and `using`, 0 for `tryAcquire`
   */
  waitTime?: Duration | undefined;
  /**
   * A fixed lease: not renewed, it ends after this time. It is checked every third of it (250 ms at least), so that the
   * holder learns of a deleted lock. @default none: renewed by the watchdog
   */
  leaseTime?: Duration | undefined;
  /** With `leaseTime`: a lease of that length, but renewed. @default false when `leaseTime` is given */
  renew?: boolean | undefined;
  /** Fails at once while the connection is known to be down. @default the module's `failFast` */
  failFast?: boolean | undefined;
  /**
   * `false` makes this acquisition an owner of its own: it enters no lock that is held around it, and no nested acquisition
   * enters this one. For calls that a shared queue, pool or batch may start in the async context of another caller. A call
   * that is really nested waits for itself until LockTimeoutError, which says so. @default the module's `reentrant`
   */
  reentrant?: boolean | undefined;
  /** How many callers of this process may wait for the name, this one included. @default the module's `maxWaiting` */
  maxWaiting?: number | undefined;
  /** Stops the waiting with LockAbortedError. A lock that is held already is not affected. */
  signal?: AbortSignal | undefined;
  /**
   * Time from the acquisition for which no other owner gets the lock, even if it is released sooner: for jobs that must
   * not run twice, and against repetition. A crash does not lengthen it. At most a fixed lease's `leaseTime`, or
   * `maxHoldTime` of the module for a lease that is renewed, else LockConfigError at the call. @default 0
   */
  minHoldTime?: Duration | undefined;
  /**
   * The group of this lock in events, traces and metrics, because a series per name would be too many: `order`, not `order:123`.
   * From 1 to 1,024 characters. @default the kind of the lock; at decorators and interceptors the template as it is
   * written, or `Orders.pay` if the key is a function
   */
  label?: string | undefined;
}

/** For a call that asks the store about a lock that is held, or not at all. */
export interface AnswerOptions {
  /** Ends the wait for the answer, with LockAbortedError. The request goes on in the background. */
  signal?: AbortSignal | undefined;
}

/** Options of a call that changes the lock of another holder. */
export interface ReasonOptions {
  /** Why, in 1 to 1,000 characters: for the holder, for events and for log lines. */
  reason?: string | undefined;
}

/** How a lease goes to another process. */
export interface HandOverOptions {
  /** How long the ticket is good: after that the lock is free. @default the lease time of the lease */
  within?: Duration | undefined;
}

/** How a lock is to be held around a callback. */
export type UsingOptions = AcquireOptions;

/** How a method is locked. Times are milliseconds, or texts such as `'30s'`. */
export interface DistributedLockOptions extends Omit<AcquireOptions, 'signal'> {
  /**
   * What happens when the lock is still busy after `waitTime`: LockTimeoutError, nothing (the call gives `undefined`, or an
   * Observable that completes), or the result of your function. Nest answers 500 to an Observable without a value. So a
   * handler that returns one needs the function, or {@link LockInterceptor}, which answers without content. While the
   * application shuts down, `'skip'` skips as well: a consumer that has taken a message and may not lose it needs
   * `'throw'`. {@link LockInterceptor} throws LockClosedError then. A handler that injects the response or `next` without
   * `passthrough` has nothing sent in its place, so it always fails: with the error of your function, or that of the lock.
   * @default 'throw'
   */
  onBusy?: 'throw' | 'skip' | ((busy: { keys: string[]; error: LockTimeoutError }) => unknown) | undefined;
  /**
   * What happens when the lease ended before a method that succeeded. Either its result stands, and the loss is an event
   * and a log line. Or the call throws LockLostError with the result attached.
   * @default 'log'
   */
  onLost?: 'log' | 'throw' | undefined;
  /**
   * Stops the waiting with LockAbortedError. Or a function that gives the signal of one call: of its arguments, or of the
   * ExecutionContext in {@link LockInterceptor}.
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- of any method
  signal?: AbortSignal | ((...args: any[]) => AbortSignal | undefined) | undefined;
  /** The name of a preset of the module. Options beside it come first. */
  preset?: string | undefined;
  /** The name of the LockService to use. @default the unnamed one */
  instance?: string | undefined;
  /**
   * Whether the method returns a Promise or an Observable, which has to be known before it runs. A Promise of an Observable
   * needs `'observable'`: the method runs, under the lock, when its Observable is subscribed to.
   * @default the method's emitted return type, else 'promise'
   */
  returns?: 'promise' | 'observable' | undefined;
}

/** Options that can change from call to call. The others have to be known when Nest boots. */
export type CallOptions = Omit<DistributedLockOptions, 'instance' | 'returns'>;

/** The options of a preset. */
export type PresetOptions = Omit<CallOptions, 'preset'>;
