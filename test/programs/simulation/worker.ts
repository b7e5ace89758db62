import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lease, Lock, LockService } from '../../../lib/index.js';
import type { Random } from '../chaos/random.js';
import { type CallId, type LockSpec, type Plan, randomOfCall } from './plan.js';
import type { SimulatedResource } from './resource.js';
import type { Actor } from './world/actor.js';

const TICK = 20;
/** ms of a command on the resource. */
const RESOURCE = 0.5;

type Side = 'read' | 'write' | undefined;
type MultiLease = Lease & { readonly fencingTokens: ReadonlyMap<string, number> };
type Run = <T>(task: () => Promise<T>) => Promise<T>;

interface Options {
  waitTime?: number;
  leaseTime?: number;
  renew?: boolean;
  signal?: AbortSignal;
}

export interface WorkerContext {
  readonly plan: Plan;
  readonly number: number;
  readonly resource: SimulatedResource;
  note(type: string, op: number | undefined, rest?: object): void;
}

const codeOf = (error: unknown): string => {
  const { code } = error as { code?: string };
  return code === 'LOCK_TIMEOUT' ? 'busy' : (code ?? String(error));
};

/** The work of one process: takes and gives back locks by a plan, and writes down what happens, as the workers of chaos do. */
export class Worker {
  draining = false;
  private ops = 0;

  constructor(
    private readonly actor: Actor,
    private readonly service: LockService,
    private readonly context: WorkerContext,
    /** Runs a task in the scope of a lock that is none of those that are judged. */
    private readonly serve: Run,
  ) {}

  async work(): Promise<void> {
    const { loops } = this.context.plan;
    await Promise.all(Array.from({ length: loops }, (_, loop) => this.loop(loop)));
  }

  private async loop(loop: number): Promise<void> {
    const { plan, number } = this.context;
    const { calls, habits, seed } = plan;
    for (let call = 0; !this.draining; call++) {
      const random = randomOfCall(seed, [number, loop, call]);
      const id: CallId = [number, loop, call].join(':') as CallId;
      const wanted = calls === undefined || calls.has(id);
      const caller = new Caller(this.actor, this.service, this.context, random, () => ++this.ops, id);
      const served = random.next() < habits.served;
      if (wanted) await (served ? this.serve(() => caller.call()) : caller.call());
      const pause = random.next() < 0.5 ? 0 : random.next() * habits.pause;
      // A service that is refused as a whole is refused at once.
      const mayRefuseAtOnce = plan.sets !== undefined;
      await this.actor.sleep(wanted && !mayRefuseAtOnce ? pause : Math.max(pause, TICK));
    }
  }
}

/** One call of a loop, with all that it leads to. */
class Caller {
  constructor(
    private readonly actor: Actor,
    private readonly service: LockService,
    private readonly context: WorkerContext,
    private readonly random: Random,
    private readonly nextOp: () => number,
    private readonly id: CallId,
  ) {}

  async call(): Promise<void> {
    const { random, habits } = this;
    const kind = random.next();
    if (kind < habits.nests) {
      await this.under();
      return;
    }
    const spec = random.pick(this.plan.locks);
    const side: Side =
      spec.kind === 'read-write' ? random.pick(['read', 'read', 'write'] as const) : undefined;
    if (spec.kind === 'lock' && this.chance(habits.several)) {
      await this.several();
      return;
    }
    const options = this.terms();
    const { leaseTime = this.plan.leaseTime, waitTime } = options;
    const trying = this.chance(habits.tries);
    const renewed = options.leaseTime === undefined || options.renew === true;
    const call = trying ? 'try' : 'acquire';
    const op = this.invoke(spec, side, { call, leaseTime, renewed, waitTime: trying ? 0 : waitTime });
    if (!trying && spec.kind !== 'semaphore' && this.chance(0.2)) {
      await this.entering(op, this.lockOf(spec, side), options, async (lease) => {
        await this.work(op, spec, side, lease, !renewed);
        if (lease.held && side !== 'read') await this.holding(op, lease, () => this.nested(op, spec, side));
      });
      return;
    }
    const lock = this.lockOf(spec, side);
    const lease = await this.attempt(op, () =>
      trying ? lock.tryAcquire({ ...options, waitTime: 0 }) : lock.acquire(options),
    );
    if (lease === null) return;
    await this.work(op, spec, side, lease, !renewed);
    await this.release(op, lease);
  }

  private get plan(): Plan {
    return this.context.plan;
  }

  private get habits() {
    return this.plan.habits;
  }

  private note(type: string, op: number, rest?: object): void {
    this.context.note(type, op, rest);
  }

  private chance(share: number): boolean {
    return this.random.next() < share;
  }

  /** The lease time is one of its own clock. */
  private invoke(
    spec: LockSpec,
    side: Side,
    details: { readonly leaseTime: number; readonly [other: string]: unknown },
  ): number {
    const op = this.nextOp();
    const shared = spec.kind === 'semaphore' || side === 'read';
    const capacity = spec.kind === 'semaphore' ? spec.permits : spec.kind === 'read-write' ? 1e9 : 1;
    const mode = shared ? 'shared' : 'exclusive';
    const leaseTime = this.actor.trueTime(details.leaseTime);
    const described = { id: this.id, lock: spec.name, kind: spec.kind, mode, capacity };
    this.note('invoke', op, { ...described, ...details, leaseTime });
    return op;
  }

  private lockOf({ name, kind, permits = 1 }: LockSpec, side: Side): Lock {
    const { service } = this;
    if (kind === 'fair') return service.getFairLock(name);
    if (kind === 'semaphore') return service.getSemaphore(name, permits);
    if (kind === 'read-write') return service.getReadWriteLock(name)[side ?? 'read'];
    return service.getLock(name);
  }

  private terms(): Options {
    const { fixedShare, patient, longestWait } = this.habits;
    const { random } = this;
    const options: Options = { waitTime: this.chance(patient) ? Infinity : random.between(100, longestWait) };
    const { longestCall } = this;
    if (this.chance(fixedShare)) options.leaseTime = random.between(300, longestCall ?? 800);
    if (longestCall !== undefined && options.leaseTime !== undefined && this.chance(0.3))
      options.renew = true;
    if (this.chance(0.05)) {
      const aborter = new AbortController();
      this.actor.setTimer(
        () => {
          aborter.abort(new DOMException('late', 'TimeoutError'));
        },
        random.between(1, 600),
      );
      options.signal = aborter.signal;
    }
    return options;
  }

  private get longestCall(): number | undefined {
    const { longestCall, longCallsFrom = 0 } = this.plan;
    return this.actor.time < longCallsFrom ? undefined : longestCall;
  }

  /** The deadline as the holder sees it, in true time; undefined where it was over before, nobody knows when. */
  private deadlineOf(lease: Lease): number | undefined {
    // The look itself may take time.
    const left = lease.remainingTime();
    return left > 0 ? this.actor.time + this.actor.trueTime(left) : undefined;
  }

  /** Of a hold that is new, or was over when the process came to look at it. */
  private firstDeadlineOf(lease: Lease): number {
    return this.deadlineOf(lease) ?? this.actor.time;
  }

  private granted(op: number, lease: Lease): void {
    const { owner, fencingToken: token, signal } = lease;
    this.note('grant', op, { owner, token, deadline: this.firstDeadlineOf(lease) });
    const lost = () => {
      this.note('loss', op, { reason: (signal.reason as { reason?: string }).reason });
    };
    if (signal.aborted) lost();
    else signal.addEventListener('abort', lost, { once: true });
  }

  private look(op: number, lease: Lease): void {
    if (lease.held) this.note('deadline', op, { deadline: this.deadlineOf(lease) });
  }

  private assertHeld(op: number, lease: Lease): boolean {
    const before = this.actor.time;
    try {
      lease.assertHeld();
    } catch {
      return false;
    }
    this.note('write', op, { before, deadline: this.deadlineOf(lease) });
    return true;
  }

  /** Reads, thinks and writes, each with the token. */
  private async update(op: number, lock: string, lease: Lease): Promise<void> {
    const { resource } = this.context;
    if (!this.assertHeld(op, lease)) return;
    await this.actor.sleep(RESOURCE);
    const read = resource.read(lock, lease.fencingToken);
    if (read < 0) return;
    await this.hold(op, lease, this.chance(0.8) ? 0 : this.random.between(1, 20));
    if (!this.assertHeld(op, lease)) return;
    await this.actor.sleep(RESOURCE);
    resource.write(lock, lease.fencingToken, read + 1, read);
  }

  private async hold(op: number, lease: Lease, time: number, fixed = false): Promise<void> {
    if (fixed) {
      await this.actor.sleep(time);
      return;
    }
    const until = this.actor.time + time;
    while (this.actor.time < until) {
      await this.actor.sleep(Math.min(TICK, until - this.actor.time));
      this.look(op, lease);
    }
  }

  private async extend(op: number, lease: Lease): Promise<void> {
    const time = this.random.between(300, this.longestCall ?? 1_500);
    this.note('extend', op, { leaseTime: this.actor.trueTime(time) });
    try {
      await lease.extend(time);
      this.note('extended', op, { outcome: 'ok', deadline: this.deadlineOf(lease) });
    } catch (error) {
      this.note('extended', op, { outcome: codeOf(error) === 'LOCK_LOST' ? 'lost' : 'unknown' });
    }
  }

  private async work(op: number, spec: LockSpec, side: Side, lease: Lease, fixed: boolean): Promise<void> {
    const { long, shortest, longest, extensions } = this.habits;
    if (spec.kind !== 'semaphore' && side !== 'read') await this.update(op, spec.name, lease);
    if (this.chance(extensions)) await this.extend(op, lease);
    const duration = this.random.next();
    if (duration < long) await this.hold(op, lease, this.random.between(shortest, longest), fixed);
    else if (duration < 0.15) await this.hold(op, lease, this.random.between(1, 30), fixed);
  }

  private async nested(outer: number, spec: LockSpec, side: Side): Promise<void> {
    const inner = spec.kind === 'read-write' ? 'read' : side;
    const details = { call: 'nested', outer, leaseTime: this.plan.leaseTime, renewed: true };
    const op = this.invoke(spec, inner, details);
    const lease = await this.attempt(op, () => this.lockOf(spec, inner).acquire({ waitTime: 2_000 }));
    if (lease === null) return;
    await this.hold(op, lease, this.random.between(0, 10));
    await this.release(op, lease);
  }

  /** While the caller waits for something else under it, the deadlines of a lease are noted. */
  private async holding<T>(op: number, lease: Lease, work: () => Promise<T>): Promise<T> {
    const look = this.actor.setRepeatingTimer(() => {
      this.look(op, lease);
    }, TICK);
    try {
      return await work();
    } finally {
      this.actor.clearTimer(look);
    }
  }

  private async attempt(op: number, ask: () => Promise<Lease | null>): Promise<Lease | null> {
    try {
      const lease = await ask();
      if (lease === null) this.note('refuse', op, { code: 'busy' });
      else this.granted(op, lease);
      return lease;
    } catch (error) {
      this.note('refuse', op, { code: codeOf(error) });
      return null;
    }
  }

  private async release(op: number, lease: Lease): Promise<void> {
    this.look(op, lease);
    this.note('release', op);
    await lease.release();
    this.note('released', op);
  }

  private async entering(
    op: number,
    lock: Lock,
    options: Options,
    run: (lease: Lease) => Promise<void>,
  ): Promise<void> {
    let entered = false as boolean;
    try {
      await lock.using(options, async (lease) => {
        entered = true;
        this.granted(op, lease);
        await run(lease);
        this.look(op, lease);
        this.note('release', op);
      });
      this.note('released', op);
    } catch (error) {
      if (entered) this.note('fault', op, { error: String(error) });
      else this.note('refuse', op, { code: codeOf(error) });
    }
  }

  /** One lock under another one, in any order: what makes deadlocks. No wait is without an end. */
  private async under(): Promise<void> {
    const { random, habits } = this;
    const outer = random.pick(this.plan.locks);
    const others = this.plan.locks.filter(({ name }) => name !== outer.name);
    if (others.length === 0) return;
    const inner = random.pick(others);
    const sideOf = ({ kind }: LockSpec): Side =>
      kind === 'read-write' ? random.pick(['read', 'write'] as const) : undefined;
    const [outerSide, innerSide] = [sideOf(outer), sideOf(inner)];
    const asked = { call: 'acquire', leaseTime: this.plan.leaseTime, renewed: true };
    const waitTime = random.between(500, 2_000);
    const op = this.invoke(outer, outerSide, { ...asked, waitTime });
    await this.entering(op, this.lockOf(outer, outerSide), { waitTime }, async (lease) => {
      await this.hold(op, lease, random.between(0, 20));
      const patience = random.between(habits.leastPatience, 4_500);
      const nested = this.invoke(inner, innerSide, { ...asked, under: op, waitTime: patience });
      await this.holding(op, lease, async () => {
        const got = await this.attempt(nested, () =>
          this.lockOf(inner, innerSide).acquire({ waitTime: patience }),
        );
        if (got === null) return;
        await this.hold(nested, got, random.between(0, 10));
        await this.release(nested, got);
      });
      await this.hold(op, lease, random.between(0, habits.lingers));
    });
  }

  /** Several plain locks at once: an attempt for each, which are answered together. */
  private async several(): Promise<void> {
    const { random } = this;
    const specs = random.some(this.plan.locks.filter(({ kind }) => kind === 'lock'));
    if (specs.length < 2) return;
    const waitTime = this.chance(0.5) ? Infinity : random.between(100, 2_000);
    // Each member is waited for as long as another one is busy, so that the checkers of single locks take it for a try.
    const first = this.nextOp();
    const asked = { call: 'try', several: first, leaseTime: this.plan.leaseTime, renewed: true };
    const ops = specs.map((spec) => ({ spec, op: this.invoke(spec, undefined, asked) }));
    let lease: MultiLease;
    try {
      lease = await this.service.acquire(
        specs.map(({ name }) => name),
        { waitTime },
      );
    } catch (error) {
      const code = codeOf(error);
      for (const { op } of ops)
        this.note('refuse', op, { code: code === 'busy' ? 'one of several busy' : code });
      return;
    }
    const deadline = this.firstDeadlineOf(lease);
    const lost = () => {
      for (const { op } of ops) this.note('loss', op, { reason: 'one of several' });
    };
    for (const { spec, op } of ops)
      this.note('grant', op, {
        owner: `${lease.owner} ${spec.name}`,
        token: lease.fencingTokens.get(spec.name),
        deadline,
      });
    lease.signal.addEventListener('abort', lost, { once: true });
    await this.actor.sleep(random.between(0, 20));
    for (const { op } of ops) {
      this.look(op, lease);
      this.note('release', op);
    }
    await lease.release();
    for (const { op } of ops) this.note('released', op);
  }
}

/** A scope that tasks can be run in, of a lock in memory, which no fault ends. */
export async function servingScope(leader: LockService): Promise<{ serve: Run; end: () => void }> {
  let end: () => void = () => undefined;
  const serve = await new Promise<Run>((resolve) => {
    void leader.using('leader', async () => {
      resolve(AsyncLocalStorage.snapshot());
      await new Promise<void>((over) => {
        end = over;
      });
    });
  });
  return {
    serve,
    end: () => {
      end();
    },
  };
}
