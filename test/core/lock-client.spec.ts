import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { closeTogether } from '../../lib/core/closing.js';
import { LockClient } from '../../lib/core/lock-client.js';
import { now, timerAt } from '../../lib/core/deadline.js';
import { Scope } from '../../lib/core/scope.js';
import type { Tenure } from '../../lib/core/tenure.js';
import { AcquisitionTrace } from '../../lib/core/tracing.js';
import type { Busy, WaitRequest } from '../../lib/core/waiting.js';
import { type LockEvent, LockUnavailableError } from '../../lib/index.js';
import { resolveOptions } from '../../lib/lock.options.validation.js';
import type { ConnectionChange, QueueTerms } from '../../lib/store/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

const FAIR: QueueTerms = { kind: 'fair', mode: 'exclusive', capacity: 1 };
const WRITE: QueueTerms = { kind: 'read-write', mode: 'exclusive', capacity: Number.MAX_SAFE_INTEGER };
const READ: QueueTerms = { ...WRITE, mode: 'shared' };

let store: ScriptedStore;
let clients: LockClient[];
let events: LockEvent[];

const open = (options: object = {}): LockClient => {
  const client = new LockClient(store, resolveOptions({ store, ...options }));
  client.events.subscribe((event) => events.push(event));
  clients.push(client);
  return client;
};

beforeEach(() => {
  jest.useFakeTimers();
  store = new ScriptedStore();
  [clients, events] = [[], []];
});

afterEach(async () => {
  await Promise.all(clients.map((client) => client.end()));
  jest.useRealTimers();
});

const pass = (time = 0) => jest.advanceTimersByTimeAsync(time);

const asking = (part: Partial<WaitRequest> = {}): WaitRequest => ({
  terms: { leaseTime: 30_000, renewed: true },
  waitTime: 10_000,
  signal: undefined,
  ...part,
});
const once = asking({ waitTime: 0 });

const held = (answer: Tenure | Busy): Tenure => {
  if ('busy' in answer) throw new Error('busy');
  return answer;
};
/** What has become of a call by now. */
const stateOf = async (call: Promise<unknown>): Promise<unknown> => {
  let state: unknown = 'waiting';
  call.then(
    (answer) => (state = answer),
    (error: unknown) => (state = error),
  );
  await pass();
  return state;
};

/** A holder that notes what it is told. */
function use(tenure: Tenure, keepFor?: number, isInUse = false) {
  const told: unknown[] = [];
  tenure.label = 'orders';
  tenure.user = {
    keepFor,
    isInUse,
    onLost: (loss) => told.push(loss),
    onReleaseRequested: () => undefined,
    onHandedOff: () => undefined,
  };
  return told;
}

describe('a client', () => {
  it('holds a lock until it is released, and then has nothing left', async () => {
    const client = open();
    const tenure = held(await client.acquire('a', asking()));
    expect([client.tenures.size, client.tenures.of('a'), tenure.held]).toEqual([1, [tenure], true]);
    expect((await store.inspect('a'))?.holders).toMatchObject([{ owner: tenure.owner }]);
    expect(await client.release(tenure)).toBeUndefined();
    expect([client.tenures.size, await store.inspect('a'), tenure.loss]).toEqual([0, null, undefined]);
    expect(await client.release(tenure)).toBeUndefined();
    expect(store.calls.release).toBe(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('answers a caller that only asks with the owner in the way and the time that it has left', async () => {
    const [client, other] = [open(), open()];
    const { owner } = held(await other.acquire('a', asking({ terms: { leaseTime: 5_000, renewed: false } })));
    expect(await client.acquire('a', once)).toMatchObject({
      busy: true,
      holder: owner,
      remainingTime: 5_000,
    });
    const own = held(await client.acquire('b', asking()));
    expect(await client.acquire('b', once)).toMatchObject({ busy: true, holder: own.owner });
    expect(await stateOf(client.acquire('a', asking({ waitTime: 500 })))).toBe('waiting');
  });

  it('says of a lease that the store had lost how it was lost, and tells of that where it was used', async () => {
    const client = open();
    const [used, unused] = [
      held(await client.acquire('a', asking())),
      held(await client.acquire('b', asking())),
    ];
    use(used);
    for (const name of ['a', 'b']) await store.forceRelease(name);
    expect(await client.release(used)).toMatchObject({
      code: 'LOCK_LOST',
      reason: 'deleted',
      owner: used.owner,
    });
    expect(await client.release(unused)).toMatchObject({ reason: 'deleted' });
    expect(events).toMatchObject([
      { type: 'lost', name: 'a', label: 'orders', owner: used.owner, reason: 'deleted' },
    ]);
    used.loss = undefined;
    const lost = held(await client.acquire('a', asking()));
    lost.lose('taken');
    expect(await client.release(lost)).toBe(lost.loss);
  });

  it('tells of what is probably not meant, unless that is silenced', () => {
    open({ silencedWarnings: ['replica'] }).warn({ code: 'replica', message: 'silenced' });
    open().warn({ code: 'replica', message: 'told' });
    expect(events).toEqual([{ type: 'warning', node: '', code: 'replica', message: 'told' }]);
  });

  it('ends each hold at maxHoldTime where it is renewed, and not where it is fixed', async () => {
    const client = open({ maxHoldTime: 20_000 });
    const renewed = held(await client.acquire('a', asking()));
    const fixed = held(await client.acquire('b', asking({ terms: { leaseTime: 25_000, renewed: false } })));
    await pass(19_900);
    expect([renewed.held, fixed.held]).toEqual([true, true]);
    await pass(101);
    expect([renewed.held, renewed.loss?.reason, fixed.held]).toEqual([false, 'max-hold', true]);
    // The store was asked for no more than that.
    expect(await store.inspect('a')).toBeNull();
  });

  it('knows the owners of its process', () => {
    const [client, sibling] = [open(), open()];
    const owned = [`${client.id}:1`, `${sibling.id}:1`, 'other:1'];
    expect(owned.map((owner) => client.isOfThisProcess(owner))).toEqual([true, true, false]);
  });

  it('knows of the other side of a read-write lock', async () => {
    const client = open();
    const terms = (queue: QueueTerms, ownWriteHold?: string) => ({ name: 'a', queue, ownWriteHold });
    const writer = held(await client.acquireQueued(terms(WRITE), asking()));
    const plain = held(await client.acquire('b', asking()));
    expect([client.hasOtherMode(writer), client.hasOtherMode(plain)]).toEqual([false, false]);
    const answered = deferred();
    store.afterAcquire = () => answered.promise;
    const reading = client.acquireQueued(terms(READ, writer.owner), asking());
    // Also before the answer comes.
    expect(client.hasOtherMode(writer)).toBe(true);
    answered.resolve();
    const reader = held(await reading);
    expect([client.hasOtherMode(writer), client.hasOtherMode(reader)]).toEqual([true, true]);
    await client.release(reader);
    expect(client.hasOtherMode(writer)).toBe(false);
  });

  it('sends together what the store can send together', () => {
    const client = open();
    expect(client.together(() => 5)).toBe(5);
    const rounds: string[] = [];
    Object.assign(store, {
      together: (run: () => unknown) => {
        rounds.push('together');
        return run();
      },
    });
    expect([client.together(() => 6), rounds]).toEqual([6, ['together']]);
  });
});

describe('a client whose connection changes', () => {
  it('tells of that, but not of the first one, and goes on with its releases and its look at the store', async () => {
    let change: (change: ConnectionChange) => void = () => undefined;
    Object.assign(store, {
      onConnectionChange: (listener: (change: ConnectionChange) => void) => {
        change = listener;
      },
    });
    const looks = jest.spyOn(store, 'health');
    const client = open();
    const error = new Error('reset');
    change({ node: 'n', connected: true, first: true });
    await pass();
    expect([events, looks.mock.calls.length]).toEqual([[], 1]);
    const tenure = held(await client.acquire('a', asking()));
    store.onRelease = () => Promise.reject(new LockUnavailableError('a'));
    await client.release(tenure);
    store.onRelease = () => undefined;
    events = [];
    change({ node: 'n', connected: false, error });
    await pass();
    expect([looks.mock.calls.length, store.calls.release]).toEqual([1, 1]);
    change({ node: 'n', connected: true });
    await pass();
    expect(events).toEqual([
      { type: 'disconnected', node: 'n', error },
      { type: 'reconnected', node: 'n', error: undefined },
    ]);
    expect([looks.mock.calls.length, store.calls.release, await store.inspect('a')]).toEqual([2, 2, null]);
  });
});

describe('a client that closes', () => {
  const closed = { code: 'LOCK_CLOSED' };

  const close = (client: LockClient) => closeTogether([client], timerAt);
  const hold = {
    ...{ name: 'a', held: true, clientId: '', owner: '' },
    endsAt: Infinity,
    group: '',
    isInUse: true,
  };

  it('gives out no lock, but to code under a lock, and keeps the locks whose callbacks run', async () => {
    const client = open();
    const tenure = held(await client.acquire('a', asking()));
    use(tenure, undefined, true);
    const inside = Scope.apart(undefined);
    const waiting = client.acquire('a', asking());
    const waitingInside = client.acquire('a', asking({ inside }));
    inside.add('a', hold);
    const { closed: ended } = close(client);
    await expect(waiting).rejects.toMatchObject({ ...closed, key: 'a' });
    expect(await stateOf(waitingInside)).toBe('waiting');
    await expect(client.acquire('b', once)).rejects.toMatchObject(closed);
    const outside = Scope.apart(undefined);
    await expect(client.acquire('b', asking({ inside: outside }))).rejects.toMatchObject(closed);
    await expect(client.acquireAll(['b', 'c'], once)).rejects.toMatchObject({ ...closed, key: 'b,c' });
    const fair = { name: 'd', queue: FAIR, ownWriteHold: undefined };
    await expect(client.acquireQueued(fair, once)).rejects.toMatchObject({ ...closed, key: 'd' });
    expect(() => {
      client.assertOpen('b', {});
    }).toThrow(expect.objectContaining(closed));
    const nested = held(await client.acquire('b', asking({ inside })));
    expect([nested.held, tenure.held, await stateOf(ended)]).toEqual([true, true, 'waiting']);
    await client.release(tenure);
    await client.release(held(await waitingInside));
    await client.release(nested);
    await ended;
    await expect(client.acquire('d', asking({ inside }))).rejects.toMatchObject(closed);
  });

  it('releases what no callback needs, tells the holders, and leaves nothing in the store', async () => {
    const client = open();
    const [used, kept] = await Promise.all(
      ['a', 'b'].map(async (name) => held(await client.acquire(name, asking()))),
    );
    const told = [used, kept].map((tenure, index) => tenure && use(tenure, index === 1 ? 5_000 : undefined));
    await close(client).closed;
    expect(told).toMatchObject([
      [{ reason: 'released', cause: closed }],
      [{ reason: 'released', cause: closed }],
    ]);
    expect(events.filter(({ type }) => type === 'lost')).toMatchObject([
      { name: 'a', label: 'orders', owner: used?.owner, reason: 'released' },
      { name: 'b', owner: kept?.owner, reason: 'released' },
    ]);
    expect([client.tenures.size, await store.inspect('a')]).toEqual([0, null]);
    // For as long as its holder had promised to keep it.
    expect((await store.inspect('b'))?.holders[0]?.remainingTime).toBeGreaterThan(4_000);
    expect(jest.getTimerCount()).toBeLessThanOrEqual(1);
  });

  it('renews a lock whose callback runs for a lease time, and then leaves it in the store without a release', async () => {
    const client = open({ leaseTime: 9_000 });
    const tenure = held(await client.acquire('a', asking({ terms: { leaseTime: 9_000, renewed: true } })));
    const told = use(tenure, undefined, true);
    const { closed: ended } = close(client);
    await pass(8_900);
    expect([tenure.held, told, await stateOf(ended)]).toEqual([true, [], 'waiting']);
    await pass(200);
    await ended;
    expect([tenure.held, told]).toMatchObject([false, [{ reason: 'expired', cause: closed }]]);
    expect((await store.inspect('a'))?.holders[0]?.owner).toBe(tenure.owner);
    expect([store.calls.release, jest.getTimerCount()]).toEqual([0, 0]);
  });

  it('gives back several locks that are granted after its end', async () => {
    const client = open();
    const answered = deferred();
    store.afterAcquire = () => answered.promise;
    const acquiring = client.acquireAll(['a', 'b'], once);
    await pass();
    const { closed: closing } = close(client);
    const refused = expect(acquiring).rejects.toMatchObject(closed);
    answered.resolve();
    await refused;
    await closing;
    expect([await store.inspect('a'), await store.inspect('b')]).toEqual([null, null]);
  });
});

describe('several locks at once', () => {
  it('are granted in the order of their names, each with its token, and are released one by one', async () => {
    const client = open();
    for (let n = 0; n < 3; n++) await client.release(held(await client.acquire('b', asking())));
    const tenures = await client.acquireAll(['b', 'a'], once);
    if ('busy' in tenures) throw new Error('busy');
    expect(tenures.map(({ name }) => name)).toEqual(['b', 'a']);
    const stored = await Promise.all(['b', 'a'].map((name) => store.inspect(name)));
    expect(tenures.map(({ fencingToken }) => fencingToken)).toEqual(stored.map((lock) => lock?.fencingToken));
    expect(client.tenures.size).toBe(2);
    for (const tenure of tenures) await client.release(tenure);
    expect([await store.inspect('a'), await store.inspect('b')]).toEqual([null, null]);
  });

  it('are refused together, with the name and the owner in the way, and none of them stays', async () => {
    const [client, other] = [open(), open()];
    const { owner } = held(await other.acquire('b', asking()));
    const answer = await client.acquireAll(['a', 'b', 'c'], once);
    expect(answer).toMatchObject({ busy: true, name: 'b', holder: owner });
    expect([client.tenures.size, await store.inspect('a'), await store.inspect('c')]).toEqual([
      0,
      null,
      null,
    ]);
    // A busy name is an answer, and is not waited for.
    expect(await stateOf(client.acquireAll(['b', 'c'], asking()))).toMatchObject({ busy: true, name: 'b' });
  });

  it('that get no answer are asked for again, and are taken back where that stays so', async () => {
    const client = open();
    store.afterAcquire = () => Promise.reject(new LockUnavailableError('a'));
    const acquiring = client.acquireAll(['a', 'b'], asking({ waitTime: 1_000 }));
    const refused = expect(acquiring).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await pass(3_000);
    await refused;
    expect(store.calls.acquireAll).toBeGreaterThan(1);
    expect(new Set(store.released.map(({ name }) => name))).toEqual(new Set(['a', 'b']));
    expect([await store.inspect('a'), await store.inspect('b')]).toEqual([null, null]);
  });
});

describe('the callers of a client', () => {
  const fair = (name: string) => ({ name, queue: FAIR, ownWriteHold: undefined });

  it('are counted by lock, and those that only ask are not among those that wait', async () => {
    const [client, other] = [open(), open()];
    const { owner } = held(await other.acquire('a', asking()));
    const theirs = held(await other.acquireQueued(fair('f'), asking()));
    const { callers } = client;
    expect([
      callers.waiting,
      callers.waitingFor('a'),
      callers.waitingSince('a'),
      callers.isAwaited('a'),
    ]).toEqual([0, 0, undefined, false]);
    const begun = now();
    const controller = new AbortController();
    const signal = controller.signal;
    const first = client.acquire('a', asking({ signal }));
    await pass(100);
    const waiting = [
      first,
      client.acquire('a', asking({ signal })),
      client.acquireQueued(fair('f'), asking({ signal })),
      client.acquireQueued(fair('f'), asking({ signal })),
    ];
    await pass();
    expect([callers.waiting, callers.waitingFor('a'), callers.waitingFor('f')]).toEqual([4, 2, 2]);
    expect([callers.waitingSince('a'), callers.waitingSince('f')]).toEqual([begun, begun + 100]);
    expect([callers.inTheWay('a'), callers.inTheWay('f'), callers.inTheWay('x')]).toEqual([
      owner,
      theirs.owner,
      undefined,
    ]);
    expect([callers.isAwaited('a'), callers.isAwaited('f')]).toEqual([true, false]);
    const answer = deferred();
    store.afterAcquire = () => answer.promise;
    const only = client.acquire('a', once);
    await pass();
    expect([callers.waiting, callers.waitingFor('a'), callers.waitingSince('a')]).toEqual([5, 2, begun]);
    answer.resolve();
    await only;
    controller.abort();
    for (const each of waiting) await expect(each).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    expect([callers.waiting, callers.waitingFor('f'), callers.waitingSince('f')]).toEqual([0, 0, undefined]);
    await pass();
    for (const name of ['a', 'f']) expect((await store.inspect(name))?.queue).toEqual([]);
  });

  it('know why the store does not answer, until it does', async () => {
    const client = open();
    const error = new LockUnavailableError('a', { effect: 'refused' });
    store.beforeAcquire = () => Promise.reject(error);
    const waiting = client.acquire('a', asking());
    await pass();
    expect([client.callers.failureOf('a'), client.callers.failureOf('b')]).toEqual([error, undefined]);
    store.beforeAcquire = () => undefined;
    await pass(100);
    expect(held(await waiting).held).toBe(true);
    expect(client.callers.failureOf('a')).toBeUndefined();
  });

  it('get the reason why the store has not answered when their time is over', async () => {
    const client = open();
    const error = new LockUnavailableError('a', { effect: 'refused', cause: new Error('away') });
    store.beforeAcquire = () => Promise.reject(error);
    const waiting = stateOf(client.acquire('a', asking({ waitTime: 400 })));
    expect(await waiting).toBe('waiting');
    const refused = expect(client.acquire('a', asking({ waitTime: 300 }))).rejects.toBe(error);
    await pass(400);
    await refused;
  });

  it('have for an answer the time that was asked for, and a moment where the wait is over meanwhile', async () => {
    const client = open();
    store.afterAcquire = () => new Promise(() => undefined);
    const started = now();
    const ends: Record<string, [code: string, after: number]> = {};
    const end = (name: string, request: WaitRequest) => {
      client.acquire(name, request).catch((error: unknown) => {
        ends[name] = [(error as LockUnavailableError).code, now() - started];
      });
    };
    end('once', asking({ waitTime: 0, answerTime: 1_000 }));
    end('short', asking({ waitTime: 20 }));
    end('long', asking({ waitTime: 3_000 }));
    end('ever', asking({ waitTime: 0 }));
    await pass(10_000);
    const after = (time: number) => ['LOCK_UNAVAILABLE', expect.closeTo(time, -1)];
    expect(ends).toEqual({ once: after(1_000), short: after(250), long: after(3_000) });
  });
});

describe('a lock that a caller of this process waits for', () => {
  it('goes to it without a command, with the next token, and its holder is told first', async () => {
    const client = open();
    const tenure = held(await client.acquire('a', asking()));
    const told: string[] = [];
    tenure.user = {
      keepFor: undefined,
      isInUse: false,
      onLost: () => told.push('lost'),
      onReleaseRequested: () => told.push('asked'),
      onHandedOff: () => told.push('handed off'),
    };
    const { fencingToken } = tenure;
    tenure.asker = { request: 'r', holders: 1, by: 'console', reason: undefined };
    const waiting = client.acquire('a', asking()).then((answer) => {
      told.push('granted');
      return answer;
    });
    await pass();
    store.calls.acquire = store.calls.handOver = 0;
    expect(await client.release(tenure)).toBeUndefined();
    expect(await waiting).toBe(tenure);
    expect(told).toEqual(['handed off', 'granted']);
    expect(tenure).toMatchObject({
      fencingToken: fencingToken + 1,
      handoffs: 1,
      user: undefined,
      asker: undefined,
    });
    expect(store.calls).toMatchObject({ acquire: 0, handOver: 0, release: 0 });
    await client.release(tenure);
    // The store learns the last token.
    expect(store.released).toMatchObject([{ fencingToken: fencingToken + 1 }]);
  });

  it('goes also to one that comes back at once, where several have wanted it', async () => {
    const client = open();
    const tenure = held(await client.acquire('a', asking()));
    const second = client.acquire('a', asking());
    await client.release(tenure);
    await second;
    const released = client.release(tenure);
    const third = client.acquire('a', asking());
    await released;
    expect(held(await third)).toBe(tenure);
    expect(store.calls).toMatchObject({ acquire: 1, release: 0 });
    await client.release(tenure);
    await pass();
    expect(await store.inspect('a')).toBeNull();
  });

  it('is kept from it for the time that its holder has promised to keep it', async () => {
    const client = open();
    const tenure = held(await client.acquire('a', asking()));
    const waiting = client.acquire('a', asking());
    await pass();
    use(tenure, 2_000);
    await client.release(tenure);
    expect(await stateOf(waiting)).toBe('waiting');
    await pass(1_900);
    expect(await stateOf(waiting)).toBe('waiting');
    await pass(1_200);
    expect(held(await waiting)).not.toBe(tenure);
  });

  it('is given up together with its request where its next owner needs another lease', async () => {
    const client = open();
    const tenure = held(await client.acquire('a', asking()));
    const waiting = client.acquire('a', asking({ terms: { leaseTime: 5_000, renewed: true } }));
    await pass();
    await client.release(tenure);
    const next = held(await waiting);
    expect([store.calls.handOver, store.calls.release, next.granted]).toEqual([1, 0, 5_000]);
    expect((await store.inspect('a'))?.holders).toMatchObject([{ owner: next.owner }]);
  });

  it('tells the trace of a call what was asked meanwhile, and which owner was in the way', async () => {
    const [client, other] = [open(), open()];
    const theirs = held(await other.acquire('a', asking()));
    const traced = () =>
      new AcquisitionTrace({ name: 'a', label: 'a', kind: 'lock', instance: undefined, client: client.id });
    const [first, second] = [traced(), traced()];
    await client.acquire('a', asking({ waitTime: 0, trace: first }));
    expect(first.context).toMatchObject({ attempts: 1, commands: 1, holder: theirs.owner });
    await other.release(theirs);
    const own = held(await client.acquire('a', asking()));
    await client.acquire('a', asking({ waitTime: 0, trace: second }));
    // The store was asked whether it still has the hold, and not for the lock.
    expect(second.context).toMatchObject({ attempts: 0, commands: 1, holder: own.owner });
  });
});

describe('a forced release', () => {
  it('ends what this process holds there at once, with its reason, and of one side only that side', async () => {
    const client = open({ label: 'console' });
    const terms = (queue: QueueTerms) => ({ name: 'a', queue, ownWriteHold: undefined });
    const reader = held(await client.acquireQueued(terms(READ), asking()));
    const other = held(await client.acquire('b', asking()));
    const told = use(reader);
    expect(await client.forceRelease('a', 'exclusive', 'stuck')).toBe(false);
    expect([reader.held, events]).toEqual([true, []]);
    expect(await client.forceRelease('a', 'shared', 'stuck')).toBe(true);
    expect(told).toMatchObject([{ reason: 'deleted', forced: { by: 'console', reason: 'stuck' } }]);
    expect(events).toMatchObject([
      { type: 'force-released', name: 'a', reason: 'stuck' },
      { type: 'lost', name: 'a', owner: reader.owner, reason: 'deleted' },
    ]);
    expect(other.held).toBe(true);
    const plain = held(await client.acquire('c', asking()));
    store.forceRelease = () => Promise.resolve(true);
    await client.forceRelease('c', 'exclusive', undefined);
    // A plain lock has no sides.
    expect(plain.held).toBe(true);
    await client.forceRelease('c', undefined, undefined);
    expect(plain.held).toBe(false);
  });
});
