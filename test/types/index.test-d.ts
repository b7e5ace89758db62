import type { HealthIndicatorResult } from '@nestjs/terminus';
import { applyDecorators } from '@nestjs/common';
import { EMPTY, type Observable, type Subject } from 'rxjs';
import { expectAssignable, expectError, expectType } from 'tsd';
import {
  DistributedLock,
  type DistributedLockOptions,
  type Election,
  type Asker,
  isLockLostError,
  isLockTimeoutError,
  type Lease,
  OncePer,
  type OnceResult,
  type DeadlockStep,
  type LockEvent,
  type LockOrderStep,
  type LockHealth,
  LockInterceptor,
  LockModule,
  type LockModuleOptions,
  type LockService,
  type LockTimeoutError,
  type LossReason,
  OnLeader,
  OnlyLeader,
  type Term,
} from 'nestjs-distributed-lock';
import { type ElectionHealthIndicator, LockHealthIndicator } from 'nestjs-distributed-lock/health';

declare const locks: LockService;
declare const stream: Observable<number>;

// What may be locked.
class Accepted {
  @DistributedLock('order:$<args[0]>')
  async promise(id: string) {
    return Promise.resolve(id);
  }

  @DistributedLock('a')
  observable(): Observable<number> {
    return stream;
  }

  @DistributedLock(['a', 'b:$<args[0][*].id>'], { waitTime: 0, onBusy: 'skip', minHoldTime: 10 })
  async several(items: { id: string }[]): Promise<number | undefined> {
    return Promise.resolve(items.length);
  }

  @DistributedLock((id: string) => `order:${id}`)
  async byFunction(id: string): Promise<void> {
    await Promise.resolve(id);
  }

  @DistributedLock((id: string) => [`order:${id}`, 'all'])
  async keyOfTheFirstArgument(id: string, amount: number): Promise<number> {
    return Promise.resolve(amount + id.length);
  }

  @DistributedLock((id: string) => `order:${id}`)
  async optionalArgument(id?: string): Promise<void> {
    await Promise.resolve(id);
  }

  @DistributedLock((first: string, second: string) => `${first}:${second}`)
  async restOfArguments(...ids: string[]): Promise<void> {
    await Promise.resolve(ids);
  }

  @DistributedLock((first: string, second: string) => `${first}:${second}`)
  async firstAndRest(first: string, ...others: string[]): Promise<void> {
    await Promise.resolve([first, ...others]);
  }

  @DistributedLock((id?: string) => `order:${id ?? 'all'}`)
  async optionalInTheKey(): Promise<void> {
    await Promise.resolve();
  }

  @DistributedLock((...ids: string[]) => ids)
  async restInTheKey(): Promise<void> {
    await Promise.resolve();
  }

  @DistributedLock((order: { id: string }) => `order:${order.id}`)
  async byPartOfAnArgument(order: { id: string; amount: number }): Promise<number> {
    return Promise.resolve(order.amount);
  }

  @DistributedLock('a', { onBusy: ({ keys, error }) => `${keys.join()} ${String(error.waited)}` })
  async busy(): Promise<string> {
    return Promise.resolve('');
  }
}
expectType<(id: string) => Promise<string>>(new Accepted().promise);

// A whole class, a key that comes later, presets, options of the call.
@DistributedLock('jobs:$<method>', 'job')
class Configured {
  private readonly tenant = 'acme';

  @DistributedLock(async (id: string) => Promise.resolve([`order:${id}`]), 'job')
  async asyncKey(id: string): Promise<void> {
    await Promise.resolve(id);
  }

  @DistributedLock('a', (urgent: boolean) => ({ waitTime: urgent ? '30s' : 0, preset: 'job' }))
  async ofTheCall(urgent: boolean): Promise<void> {
    await Promise.resolve(urgent);
  }

  @DistributedLock(
    function (this: Configured, id: string) {
      return `${this.tenant}:${id}`;
    },
    { signal: (_id: string, signal: AbortSignal) => signal },
  )
  async signalOfTheCall(id: string, signal: AbortSignal): Promise<boolean> {
    return Promise.resolve(signal.aborted && id === this.tenant);
  }

  // @ts-expect-error the name of the class is no option of a call
  @DistributedLock('a', () => ({ instance: 'b' }))
  async fixedAtBoot(): Promise<void> {
    await Promise.resolve();
  }
}
expectType<typeof Configured>(Configured);

// What a busy call gives has to be what the method may give.
class Busy {
  @DistributedLock('a', { onBusy: 'skip' })
  async skipped(): Promise<void> {
    await Promise.resolve();
  }

  @DistributedLock('a', { onBusy: 'skip' })
  skippedStream(): Observable<number> {
    return stream;
  }

  @DistributedLock('a', { onBusy: ({ keys }) => keys.length })
  async replaced(): Promise<number> {
    return Promise.resolve(1);
  }

  @DistributedLock('a', { onBusy: async () => Promise.resolve(1) })
  async replacedLater(): Promise<number> {
    return Promise.resolve(1);
  }

  @DistributedLock('a', { onBusy: () => stream })
  replacedStream(): Observable<number> {
    return stream;
  }

  @DistributedLock('a', {
    onBusy: ({ error }) => {
      throw error;
    },
  })
  async thrown(): Promise<number> {
    return Promise.resolve(1);
  }

  @DistributedLock('a', { onBusy: () => 1 })
  async resultNotUsed(): Promise<void> {
    await Promise.resolve();
  }

  // @ts-expect-error a skipped call gives undefined
  @DistributedLock('a', { onBusy: 'skip' })
  async neverUndefined(): Promise<number> {
    return Promise.resolve(1);
  }

  // @ts-expect-error a text in place of a number
  @DistributedLock('a', { onBusy: () => 'busy' })
  async neverText(): Promise<number> {
    return Promise.resolve(1);
  }

  // @ts-expect-error nothing in place of a number
  @DistributedLock('a', { onBusy: () => undefined })
  streamOfNumbers(): Observable<number> {
    return stream;
  }
}
declare const someOptions: DistributedLockOptions;
class NotKnown<T> {
  @DistributedLock('a', someOptions)
  async options(): Promise<number> {
    return Promise.resolve(1);
  }

  @DistributedLock('a', { onBusy: someOptions.onBusy })
  async choice(): Promise<number> {
    return Promise.resolve(1);
  }

  @DistributedLock('a', { onBusy: 'skip' })
  async type(value: T): Promise<T> {
    return Promise.resolve(value);
  }
}
expectType<typeof Busy>(Busy);
expectType<typeof NotKnown>(NotKnown);

// What may not: a sync method cannot be held until its end.
class Sync {
  // @ts-expect-error a sync method
  @DistributedLock('a')
  run(): number {
    return 1;
  }

  // @ts-expect-error a method that returns nothing
  @DistributedLock('a')
  nothing(): void {
    return undefined;
  }
}

// A Promise of an Observable: only where it is announced.
class PromisesOfObservables {
  // @ts-expect-error nothing says that it is one
  @DistributedLock('a')
  async unannounced(): Promise<Observable<number>> {
    return Promise.resolve(stream);
  }

  // @ts-expect-error nor that it may be one
  @DistributedLock('a')
  async perhaps(): Promise<Observable<number> | undefined> {
    return Promise.resolve(stream);
  }

  @DistributedLock('a', { returns: 'observable' })
  async announced(): Promise<Observable<number>> {
    return Promise.resolve(stream);
  }

  @DistributedLock('a', { returns: 'observable' })
  observable(): Observable<number> {
    return stream;
  }

  @DistributedLock((id: string) => id, { returns: 'observable' })
  async withKey(id: string): Promise<Observable<string>> {
    return Promise.resolve(stream as unknown as Observable<string>).finally(() => id);
  }

  // @ts-expect-error it gives no Observable
  @DistributedLock('a', { returns: 'observable' })
  async announcedInVain(): Promise<number> {
    return Promise.resolve(1);
  }

  // @ts-expect-error it is none, whatever is said of it
  @DistributedLock('a', { returns: 'promise' })
  noPromise(): Observable<number> {
    return stream;
  }

  // @ts-expect-error nor is this one only
  @DistributedLock('a', { returns: 'promise' })
  async promised(): Promise<Observable<number>> {
    return Promise.resolve(stream);
  }

  @DistributedLock('a', { returns: 'promise' })
  promise(): Promise<number> {
    return Promise.resolve(1);
  }

  @DistributedLock('a')
  async anything(): Promise<any> {
    return Promise.resolve();
  }

  @DistributedLock('a')
  async nothing(): Promise<never> {
    return Promise.reject(new Error('never'));
  }
}
expectType<typeof PromisesOfObservables>(PromisesOfObservables);

// Promises from an Observable: they would be waited for without the lock.
declare const promises: Observable<Promise<number>>;
class ObservablesOfPromises {
  // @ts-expect-error each of them outlives the lock
  @DistributedLock('a')
  promises(): Observable<Promise<number>> {
    return promises;
  }

  // @ts-expect-error announced or not
  @DistributedLock('a', { returns: 'observable' })
  announced(): Observable<Promise<number>> {
    return promises;
  }

  // @ts-expect-error nor where they are promised themselves
  @DistributedLock('a', { returns: 'observable' })
  async promised(): Promise<Observable<Promise<number>>> {
    return Promise.resolve(promises);
  }

  // @ts-expect-error nor where only some are
  @DistributedLock('a')
  some(): Observable<Promise<number> | number> {
    return promises;
  }

  @DistributedLock('a')
  anything(): Observable<any> {
    return promises;
  }
}
expectType<typeof ObservablesOfPromises>(ObservablesOfPromises);

// Promises in a collection: the lock is gone before they are over.
class CollectionsOfPromises {
  // @ts-expect-error Promise.all is missing
  @DistributedLock('a')
  async list(ids: number[]) {
    return Promise.resolve(ids.map(async (id) => Promise.resolve(id)));
  }

  // @ts-expect-error nor where only some are
  @DistributedLock('a')
  async some(): Promise<readonly (number | Promise<number>)[] | undefined> {
    return Promise.resolve([]);
  }

  // @ts-expect-error nor in a Map
  @DistributedLock('a')
  async map(): Promise<Map<string, Promise<number>>> {
    return Promise.resolve(new Map());
  }

  // @ts-expect-error nor in a Set
  @DistributedLock('a', { returns: 'promise' })
  async set(): Promise<Set<Promise<number>>> {
    return Promise.resolve(new Set());
  }

  // @ts-expect-error nor from an Observable
  @DistributedLock('a')
  observable(): Observable<Promise<number>[]> {
    return EMPTY;
  }

  @DistributedLock('a')
  async all(ids: number[]): Promise<number[]> {
    return Promise.all(ids.map(async (id) => Promise.resolve(id)));
  }

  @DistributedLock('a')
  async anything(): Promise<any[] | Map<any, any> | Set<unknown> | string | [number, string]> {
    return Promise.resolve([]);
  }
}
expectType<typeof CollectionsOfPromises>(CollectionsOfPromises);

// A subclass: what the caller gets is plain.
interface Cancellable<T> extends Promise<T> {
  cancel(): void;
}
declare const cancellable: Cancellable<number>;
declare const subject: Subject<number>;
class Subclasses {
  // @ts-expect-error nobody could cancel it
  @DistributedLock('a')
  promise(): Cancellable<number> {
    return cancellable;
  }

  // @ts-expect-error nobody could push into it
  @DistributedLock('a')
  subject(): Subject<number> {
    return subject;
  }

  // @ts-expect-error not this way either
  @DistributedLock('a', { returns: 'observable' })
  announced(): Subject<number> {
    return subject;
  }

  @DistributedLock('a')
  either(plain: boolean): Promise<number> | Promise<string> {
    return plain ? Promise.resolve(1) : Promise.resolve('');
  }
}
expectType<typeof Subclasses>(Subclasses);

// In a generic class, whatever it is of.
abstract class Generic<T> {
  @DistributedLock('a')
  async run(value: T): Promise<T> {
    return Promise.resolve(value);
  }

  @DistributedLock('a')
  async list(value: T): Promise<T[]> {
    return Promise.resolve([value]);
  }

  @DistributedLock('a')
  abstractStream(): Observable<T> {
    return this.source();
  }

  @DistributedLock('a')
  async own<U>(value: U): Promise<U> {
    return Promise.resolve(value);
  }

  protected abstract source(): Observable<T>;
}
expectType<typeof Generic>(Generic);

// What depends on type parameters is left to the check at run time.
class Deferred<T extends { id: string }, F extends (...args: any[]) => Promise<any>> {
  @DistributedLock('a')
  async element<K extends keyof T>(key: K): Promise<T[K]> {
    return Promise.reject(new Error(String(key)));
  }

  @DistributedLock('a')
  async elements<K extends keyof T>(key: K): Promise<T[K][]> {
    return Promise.reject(new Error(String(key)));
  }

  @DistributedLock('a', { returns: 'promise' })
  async announced<K extends keyof T>(key: K): Promise<T[K]> {
    return Promise.reject(new Error(String(key)));
  }

  @DistributedLock('a')
  async result(run: F): Promise<Awaited<ReturnType<F>>> {
    return await run();
  }

  @DistributedLock('a')
  stream<K extends keyof T>(key: K): Observable<T[K]> {
    throw new Error(String(key));
  }

  @DistributedLock('a', { returns: 'observable' })
  async promised<K extends keyof T>(key: K): Promise<Observable<T[K]>> {
    return Promise.reject(new Error(String(key)));
  }

  @DistributedLock((key: string) => key)
  async byFunction<K extends keyof T & string>(key: K): Promise<T[K]> {
    return Promise.reject(new Error(key));
  }

  // @ts-expect-error whatever it is of
  @DistributedLock('a')
  async unannounced<K extends keyof T>(key: K): Promise<Observable<T[K]>> {
    return Promise.reject(new Error(String(key)));
  }

  // @ts-expect-error whatever they are of
  @DistributedLock('a')
  promises<K extends keyof T>(key: K): Observable<Promise<T[K]>> {
    throw new Error(String(key));
  }
}
expectType<typeof Deferred>(Deferred);

applyDecorators(DistributedLock('a'));
applyDecorators(
  DistributedLock((id: string) => id, { returns: 'observable' }),
  DistributedLock('b', 'job'),
);

class WrongKeys {
  @DistributedLock('a:$<args[0]>:$$<args[7]>')
  async literal(...ids: string[]): Promise<string[]> {
    return Promise.resolve(ids);
  }

  // @ts-expect-error the method has no second argument
  @DistributedLock(['from:$<args[0]>', 'to:$<args[1].id>'])
  async tooFewForTemplates(from: string): Promise<string> {
    return Promise.resolve(from);
  }

  // @ts-expect-error the method has none
  @DistributedLock('a:$<args[0]>', { waitTime: 0 })
  async noneForTemplates(): Promise<void> {
    await Promise.resolve();
  }

  // @ts-expect-error the argument has no such part
  @DistributedLock((order: { id: string }) => `order:${order.id}`)
  async wrongPart(order: { amount: number }): Promise<number> {
    return Promise.resolve(order.amount);
  }

  // @ts-expect-error the method has none
  @DistributedLock((id: string) => `order:${id}`)
  async noArgument(): Promise<void> {
    await Promise.resolve();
  }

  // @ts-expect-error the method has one
  @DistributedLock((id: string, part: number) => `order:${id}:${part.toFixed()}`)
  async tooFewArguments(id: string): Promise<string> {
    return Promise.resolve(id);
  }

  // @ts-expect-error said of an Observable, too
  @DistributedLock((id: string) => id, { returns: 'observable' })
  noArgumentOfAStream(): Observable<number> {
    return stream;
  }

  // @ts-expect-error the method has a string there
  @DistributedLock((id: number) => `order:${id.toFixed()}`)
  async wrongArgument(id: string): Promise<string> {
    return Promise.resolve(id);
  }
}
expectType<typeof Sync>(Sync);
expectType<typeof WrongKeys>(WrongKeys);

expectError(DistributedLock(42));
expectError(DistributedLock('a', 5));
expectError(DistributedLock('a', () => ({ waitTme: 5 })));
expectError(DistributedLock((id: string) => id.length));
expectError(DistributedLock('a', { waitTme: 5 }));
expectError(DistributedLock('a', []));
expectError(LockInterceptor('a', []));
expectError(DistributedLock('a', { kind: 'mutex' }));
expectError(DistributedLock('a', { onBusy: 'wait' }));
expectError(DistributedLock('a', { onLost: 'ignore' }));
expectError(DistributedLock('a', { returns: 'stream' }));
expectError(DistributedLock('a', { waitTime: '5' }));
LockInterceptor((context) => context.getHandler().name, { waitTime: 0 });
expectError(LockInterceptor('a', { returns: 'promise' }));

// The service.
expectType<Promise<Lease>>(locks.acquire('a'));
expectType<Promise<Lease>>(locks.acquire(['a', 'b'], { waitTime: Infinity }));
expectType<Promise<Lease | null>>(locks.tryAcquire('a'));
expectType<Promise<number>>(locks.using('a', () => 1));
expectType<Promise<string>>(locks.using('a', { leaseTime: 5 }, async (lease) => Promise.resolve(lease.name)));
expectType<Promise<number>>(locks.getLock('a').using((lease) => lease.fencingToken));
expectType<Promise<string>>(
  locks
    .getLock('a')
    .acquire()
    .then((lease) => lease.handOver({ within: '5m' })),
);
expectType<Promise<Lease>>(locks.resume('ticket'));
expectError(locks.resume(7));
const onceResult = await locks.once('a', { period: '1h', retryAfterFailure: 5 }, async () =>
  Promise.resolve('x'),
);
expectType<OnceResult<string>>(onceResult);
if (onceResult.ran) expectType<string>(onceResult.value);
else expectType<number>(onceResult.since);
expectError(locks.once('a', {}, () => 1));
class OncePerPeriod {
  @OncePer('a', { period: '1h' })
  async fine(): Promise<string | undefined> {
    return Promise.resolve('x');
  }

  @OncePer((id: string) => id, { period: 5 })
  async nothing(id: string): Promise<void> {
    return Promise.resolve(void id);
  }
}
void OncePerPeriod;
class NotOncePerPeriod {
  // @ts-expect-error -- a skipped call gives undefined
  @OncePer('a', { period: '1h' })
  async wrong(): Promise<string> {
    return Promise.resolve('x');
  }

  // @ts-expect-error -- no Promise
  @OncePer('a', { period: '1h' })
  sync(): void {
    return undefined;
  }
}
void NotOncePerPeriod;
expectError(locks.getLock('a').using((lease) => lease.handOver({ within: 'soon' })));
expectType<readonly Lease[]>(locks.leases());
expectType<Observable<LockEvent>>(locks.events$);
expectType<Promise<LockHealth>>(locks.health());
declare const health: LockHealth;
expectType<'up' | 'degraded' | 'down'>(health.status);
expectType<number | undefined>(health.nodes[0]?.replicas?.[0]?.lag);
expectType<string | undefined>(health.warnings[0]?.message);
declare const event: LockEvent;
if (event.type === 'deadlock') {
  expectType<readonly DeadlockStep[]>(event.cycle);
  expectType<boolean>(event.broken);
}
if (event.type === 'lock-order') {
  expectType<LockOrderStep>(event.step);
  expectType<readonly LockOrderStep[]>(event.former);
}
declare const timeout: LockTimeoutError;
expectType<'timeout' | 'queue-full' | 'deadlock'>(timeout.reason);
expectType<readonly DeadlockStep[] | undefined>(timeout.cycle);
LockModule.forRoot({ store: 'memory', lockOrder: 'throw', deadlock: 'report' });
expectError(LockModule.forRoot({ store: 'memory', lockOrder: 'error' }));
expectError(LockModule.forRoot({ store: 'memory', deadlock: true }));
if (event.type === 'warning') expectType<string>(event.code);
expectError(locks.acquire(5));
expectError(locks.acquire('a', { waitTme: 5 }));
expectError(locks.using('a'));

// Elections.
const election = locks.getElection('a', { leaseTime: '15s' });
expectType<Election>(election);
expectType<'idle' | 'follower' | 'leading' | 'resigning'>(election.state);
expectType<Observable<boolean>>(election.leader$);
expectType<boolean>(election.isLeader());
expectType<Promise<{ label: string; term: number } | null>>(election.leader());
const { signal } = new AbortController();
expectType<Promise<void>>(election.run(({ number }) => number, { signal }));
expectType<Promise<void>>(election.resign());
declare const term: Term;
expectType<number>(term.number);
expectType<AbortSignal>(term.signal);
expectError(locks.getElection('a', { waitTime: 5 }));
expectError(election.run());
expectError(OnLeader('a', { waitTime: 5 }));

class Leading {
  @OnLeader('a', { leaseTime: 5_000, instance: 'b' })
  @OnLeader('b')
  async lead(term: Term): Promise<void> {
    await Promise.resolve(term);
  }
  @OnLeader('a')
  plain(): number {
    return 1;
  }
  @OnlyLeader('a')
  async skipped(id: string): Promise<string | undefined> {
    return Promise.resolve(id);
  }
  @OnlyLeader('a')
  async empty(): Promise<void> {
    return Promise.resolve();
  }
  @OnlyLeader('a')
  sync(): void {
    // nothing
  }
}
expectType<typeof Leading>(Leading);

class WronglyLeading {
  // @ts-expect-error -- it gets a term
  @OnLeader('a')
  async lead(id: string): Promise<void> {
    await Promise.resolve(id);
  }
  // @ts-expect-error -- a skipped call gives undefined
  @OnlyLeader('a')
  async skipped(): Promise<string> {
    return Promise.resolve('');
  }
  // @ts-expect-error -- a skipped call gives undefined
  @OnlyLeader('a')
  stream(): Observable<number> {
    throw new Error();
  }
}
expectType<typeof WronglyLeading>(WronglyLeading);

// The indicators.
declare const electionIndicator: ElectionHealthIndicator;
expectType<Promise<HealthIndicatorResult<'jobs'>>>(
  electionIndicator.isHealthy('jobs', 'a', { instance: 'b' }),
);
expectError(electionIndicator.isHealthy('jobs'));
declare const indicator: LockHealthIndicator;
expectType<Promise<HealthIndicatorResult<'locks'>>>(indicator.isHealthy('locks'));
expectType<Promise<HealthIndicatorResult<'locks'>>>(indicator.isHealthy('locks', { instance: 'audit' }));
expectError(indicator.isHealthy());
expectError(indicator.isHealthy('locks', { name: 'audit' }));

// The module.
expectAssignable<LockModuleOptions>({ connection: 'redis://localhost' });
expectAssignable<LockModuleOptions>({
  connection: { host: 'x', sentinels: [{ host: 'x', port: 1 }], name: 'm' },
});
expectAssignable<LockModuleOptions>({ store: 'memory', localHandoff: 0, waitTime: Infinity });

// Guards.
declare const error: unknown;
if (isLockTimeoutError(error)) expectType<number>(error.waited);
if (isLockLostError(error)) expectType<LossReason>(error.reason);

// Asking for a lock, and taking it.
expectType<Promise<number>>(locks.requestRelease('a', { reason: 'deploy' }));
expectType<Promise<boolean>>(locks.forceRelease('a', { reason: 'stuck' }));
expectType<Promise<boolean>>(locks.getLock('a').forceRelease({ reason: 'stuck' }));
// @ts-expect-error several names are several locks
void locks.requestRelease(['a', 'b']);
declare const asked: Lease;
expectType<AbortSignal>(asked.releaseRequested);
if (isLockLostError(error)) expectType<Asker | undefined>(error.forced);
