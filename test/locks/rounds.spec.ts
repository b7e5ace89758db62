import { describe, expect, it } from '@jest/globals';
import { LockService, LockUnavailableError, MemoryLockStore } from '../../lib/index.js';
import { type Round, Rounds, stepsOf } from '../../lib/locks/multi/rounds.js';
import type { StoreLock } from '../../lib/locks/store-lock.js';
import { worthAnotherTry } from '../../lib/store/another-try.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

const locks = new LockService({ store: 'memory' });

const others = new LockService({ store: 'memory' });

const busy = { busy: true, holder: undefined } as const;

/** As in a multi-lock, in its order. */
const membersOf = (...given: unknown[]) => given as StoreLock[];

const roundsOf = (members: readonly StoreLock[], mostHold = Infinity) =>
  new Rounds(members, stepsOf(members), mostHold);

const last = ({ steps }: Round) => steps.at(-1)!;

describe('the rounds of a multi-lock', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((name) => locks.getFairLock(name) as unknown as StoreLock);
  const fair = membersOf(a, b, c);

  it('begin without holding, and wait next for the member that was in the way', () => {
    const rounds = roundsOf(fair);
    expect(rounds.current.hold).toBe(0);
    const { steps, hold } = rounds.next({ step: rounds.current.steps[1]!, answer: busy, waited: 0 });
    expect([steps.map(([lock]) => lock!.location), hold]).toEqual([
      [b, a, c].map((lock) => lock!.location),
      0,
    ]);
  });

  /** The last one before a round in order. */
  const refused = (rounds: Rounds, waited = 0, refusals = 4) => {
    for (let n = 1; n < refusals; n++) {
      expect(rounds.next({ step: last(rounds.current), answer: busy, waited }).hold).toBe(0);
    }
    return rounds.next({ step: last(rounds.current), answer: busy, waited });
  };

  it('hold in the order of all processes after the fourth refusal, and after errors only not', () => {
    const rounds = roundsOf(fair);
    for (let n = 0; n < 5; n++) {
      const answer = new Error('no answer');
      expect(rounds.next({ step: last(rounds.current), answer, waited: 0 }).hold).toBe(0);
    }
    const { steps, hold } = refused(rounds);
    expect(steps.map(([lock]) => lock!.location)).toEqual(fair.map(({ location }) => location));
    expect(hold).toBeGreaterThanOrEqual(75);
    expect(hold).toBeLessThanOrEqual(125);
  });

  it('give up what they hold when each member may have been waited for, and twice as late each time', () => {
    const rounds = roundsOf(fair);
    const inOrder = (waited: number, refusals: number) => {
      const { hold } = refused(rounds, waited, refusals);
      const after = rounds.next({ step: rounds.current.steps[1]!, answer: busy, waited: 60_000 });
      expect([after.hold, after.steps[0]![0]!.location]).toEqual([0, b!.location]);
      return hold;
    };
    for (const expected of [300, 600, 1_200]) {
      // What has held in vain is tried again sooner.
      const hold = inOrder(100, expected === 300 ? 4 : 2);
      expect(hold / expected).toBeGreaterThanOrEqual(0.75);
      expect(hold / expected).toBeLessThanOrEqual(1.25);
    }
  });

  it('hold for no longer than the lease allows', () => {
    const rounds = roundsOf(fair, 40);
    expect(refused(rounds, 500).hold).toBe(40);
  });

  it('take plain locks in as few steps as possible', () => {
    const plain = (name: string, service = locks) => service.getLock(name) as unknown as StoreLock;
    const members = membersOf(plain('1'), plain('2'), locks.getFairLock('3'), plain('4'), plain('5', others));
    expect(stepsOf(members)).toHaveLength(3);
  });

  it('hold for half a second at first, however long the waits before were', () => {
    const { hold } = refused(roundsOf(fair), 30_000);
    expect(hold).toBeGreaterThanOrEqual(375);
    expect(hold).toBeLessThanOrEqual(625);
  });

  it('name the lock that is waited for first where several are taken in one step', () => {
    const rounds = roundsOf(membersOf(...['1', '2', '3'].map((name) => locks.getLock(name))));
    const refusal = { step: rounds.current.steps[0]!, answer: { ...busy, name: '3' }, waited: 0 };
    expect(rounds.next(refusal)).toMatchObject({ first: '3', hold: 0 });
    expect(rounds.next({ ...refusal, answer: new Error('no answer') }).first).toBeUndefined();
  });

  it('keep the sides of a read-write lock together, the write side first', () => {
    const { read, write } = locks.getReadWriteLock('doc');
    const rounds = roundsOf(membersOf(a, write, read));
    const { steps } = rounds.next({ step: rounds.current.steps[2]!, answer: busy, waited: 0 });
    expect(steps.map(([lock]) => lock!.location)).toEqual(
      [write, read, a].map((lock) => (lock as StoreLock).location),
    );
  });
});

describe('several plain locks in one request', () => {
  it('are asked for without waiting, also one that callers of this process wait for', async () => {
    const store = new MemoryLockStore();
    await using locks = new LockService({ store });
    await using others = new LockService({ store });
    const a = await others.acquire('a');
    const waiting = locks.acquire('a', { waitTime: 5_000 });
    const refused = locks.acquire(['a', 'b'], { waitTime: 0 });
    const refusal = await refused.catch((error: unknown) => error);
    await a.release();
    await (await waiting).release();
    expect(refusal).toMatchObject({ name: 'LockTimeoutError', holder: a.owner });
  });

  /** Its answers take a while, and it does nothing after it has closed. */
  class SlowStore extends MemoryLockStore {
    readonly told: string[] = [];

    override async acquireAll(...given: Parameters<MemoryLockStore['acquireAll']>) {
      const reply = await super.acquireAll(...given);
      await pass(100);
      return reply;
    }

    override async release(...given: Parameters<MemoryLockStore['release']>) {
      await pass(20);
      this.told.push(`release ${given[0].name}`);
      return await super.release(...given);
    }

    override async close() {
      this.told.push('close');
      await super.close();
    }
  }

  it('are given back before the store of a service closes, unless a holder has them', async () => {
    const store = new SlowStore();
    const service = new LockService({ store });
    void service.using('c', () => service.using(['d', 'e'], () => undefined));
    const refused = expect(service.acquire(['a', 'b'])).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    await pass(10);
    await service.close();
    await refused;
    expect(store.told).toEqual([...['a', 'b', 'd', 'e', 'c'].map((name) => `release ${name}`), 'close']);
  });

  it('have one wait time for both tries', async () => {
    const store = new ScriptedStore();
    const service = new LockService({ store });
    const dropped = worthAnotherTry(new LockUnavailableError('a', { effect: 'refused' }));
    store.acquireAll = () => {
      store.acquireAll = () => new Promise(() => undefined);
      return pass(1_800).then(() => Promise.reject(dropped));
    };
    const begun = performance.now();
    await expect(service.acquire(['a', 'b'], { waitTime: 2_000 })).rejects.toBeDefined();
    expect(performance.now() - begun).toBeLessThan(2_500);
    await service.close();
  });
});
