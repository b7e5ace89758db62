import { describe, expect, it } from '@jest/globals';
import type { DeadlockStep, LockEvent, LockService } from '../../../lib/index.js';
import { roleOf } from '../../support/keys.js';
import { inWorld, type Stage, type WorldProcess } from '../../world/index.js';

interface Asked {
  readonly name: string | string[];
  readonly kind?: 'fair' | 'read' | 'write' | 'semaphore';
  readonly label?: string;
  readonly waitTime?: number;
}
interface Outcome {
  readonly asked: number;
  readonly ended: number;
  readonly reason?: string | undefined;
  readonly cycle?: DeadlockStep[] | undefined;
}
type Deadlock = Extract<LockEvent, { type: 'deadlock' }>;

function lockOf(locks: LockService, { name, kind }: Asked) {
  if (typeof name !== 'string') return locks.getMultiLock(name.map((one) => locks.getLock(one)));
  if (kind === 'fair') return locks.getFairLock(name);
  if (kind === 'semaphore') return locks.getSemaphore(name, 1);
  return kind === undefined ? locks.getLock(name) : locks.getReadWriteLock(name)[kind];
}

/** Takes one lock, and a second one under it after a while. */
const nest = (
  { pass, now }: Stage,
  { locks }: WorldProcess,
  first: Asked,
  { waitTime = 8_000, ...second }: Asked,
  gap: number,
  hold = 0,
): Promise<Outcome> =>
  lockOf(locks, first).using({ label: first.label, waitTime: 60_000 }, async () => {
    await pass(gap);
    const asked = now();
    try {
      await lockOf(locks, second).using({ label: second.label, waitTime }, () => pass(hold));
      return { asked, ended: now() };
    } catch (error) {
      const { reason, cycle } = error as Outcome;
      return { asked, ended: now(), reason, cycle };
    }
  });

const deadlocksOf = ({ events }: WorldProcess) =>
  events.filter((event): event is Deadlock => event.type === 'deadlock');
const notesOn = ({ server }: Stage) => server.keys.filter((key) => roleOf(key) === 'waits');

const start = ({ process }: Stage, count: number, options = {}) =>
  Array.from({ length: count }, (_, n) =>
    process({ label: `api-${String(n + 1)}`, lockOrder: 'off', ...options }),
  );

describe('processes that wait for each other', () => {
  it('one of them ends, the others go on, and each of them is told', () =>
    inWorld(1, async (stage) => {
      const [one, two] = start(stage, 2) as [WorldProcess, WorldProcess];
      const outcomes = await Promise.all([
        nest(stage, one, { name: 'order:7', label: 'order' }, { name: 'stock:7', label: 'stock' }, 100),
        nest(stage, two, { name: 'stock:7', label: 'stock' }, { name: 'order:7', label: 'order' }, 800),
      ]);
      const ends = [
        { name: 'stock:7', label: 'stock', process: 'api-1' },
        { name: 'order:7', label: 'order', process: 'api-2' },
      ];
      // Processes compare when they began to wait by wall clocks, which are up to ten seconds apart here.
      const ended = outcomes.findIndex(({ reason }) => reason === 'deadlock');
      const [own, other] = [ends[ended]!, ends[1 - ended]!];
      expect(outcomes[1 - ended]?.reason).toBeUndefined();
      expect(outcomes[ended]).toMatchObject({ reason: 'deadlock', cycle: [own, other] });
      const lock = { name: own.name, label: own.label };
      const otherLock = { name: other.name, label: other.label };
      const [loser, winner] = ended === 0 ? [one, two] : [two, one];
      expect(deadlocksOf(loser)).toEqual([{ type: 'deadlock', ...lock, cycle: [own, other], broken: true }]);
      expect(deadlocksOf(winner)).toEqual([
        { type: 'deadlock', ...otherLock, cycle: [other, own], broken: false },
      ]);
      // The page says 2 s.
      expect(outcomes[ended]!.ended - Math.max(...outcomes.map(({ asked }) => asked))).toBeLessThan(2_000);
      await stage.until(() => notesOn(stage).length === 0);
    }));

  it('in circles of four processes and of several kinds at once', () =>
    inWorld(2, async (stage) => {
      const all = start(stage, 4);
      const circle: Asked[] = [
        { name: 'a', kind: 'fair' },
        { name: 'b', kind: 'write' },
        { name: ['c', 'd'] },
        { name: 'e', kind: 'semaphore' },
      ];
      const side: Asked = { name: 'rw', kind: 'read' };
      const outcomes = await Promise.all([
        ...all.map((process, n) => nest(stage, process, circle[n]!, circle[(n + 1) % 4]!, 800 + 20 * n)),
        // A second circle beside it, of two of the same processes: one of two readers in the way is enough.
        nest(stage, all[0]!, side, { name: 'x' }, 800),
        nest(stage, all[1]!, side, { name: 'free' }, 800, 2_000),
        nest(stage, all[2]!, { name: 'x' }, { ...side, kind: 'write' }, 850),
      ]);
      const reasons = outcomes.map(({ reason }) => reason);
      expect(reasons.slice(0, 4).filter((reason) => reason === 'deadlock')).toHaveLength(1);
      expect(reasons[5]).toBeUndefined();
      expect([reasons[4], reasons[6]].filter((reason) => reason === 'deadlock')).toHaveLength(1);
      expect(reasons.filter((reason) => reason === undefined)).toHaveLength(5);
    }));

  it('is told and not ended where a process only reports, and nothing is written of short waits or of waits alone', () =>
    inWorld(4, async (stage) => {
      const [one, two] = start(stage, 2, { deadlock: 'report' }) as [WorldProcess, WorldProcess];
      const held = nest(stage, one, { name: 'c' }, { name: 'd' }, 0, 900);
      await stage.pass(50);
      const alone = two.locks.using('c', { waitTime: 8_000 }, () => undefined);
      await stage.pass(750);
      expect(notesOn(stage)).toEqual([]);
      await Promise.all([held, alone]);
      const outcomes = await Promise.all([
        nest(stage, one, { name: 'a' }, { name: 'b', waitTime: 2_600 }, 100),
        nest(stage, two, { name: 'b' }, { name: 'a', waitTime: 3_000 }, 100),
      ]);
      expect(outcomes.map(({ reason }) => reason)).toEqual(['timeout', undefined]);
      expect([deadlocksOf(one).length, deadlocksOf(two).length]).toEqual([1, 1]);
    }));

  it('a look that gets no answer refutes nothing, and a process that has stood still looks again', () =>
    inWorld(5, async (stage) => {
      const [one, two] = start(stage, 2) as [WorldProcess, WorldProcess];
      const outcomes = [
        nest(stage, one, { name: 'a' }, { name: 'b', waitTime: 20_000 }, 100),
        nest(stage, two, { name: 'b' }, { name: 'a', waitTime: 20_000 }, 400),
      ];
      await stage.pass(900);
      stage.server.pause(700);
      await stage.pass(800);
      two.pause(900);
      const ended = (await Promise.all(outcomes)).map(({ reason }) => reason);
      expect(ended.filter((reason) => reason === 'deadlock')).toHaveLength(1);
      expect(ended.filter((reason) => reason === undefined)).toHaveLength(1);
    }));
});

describe('a break without a deadlock', () => {
  it('does not happen for a note that stays although its wait has ended, or its process has stopped', () =>
    inWorld(6, async (stage) => {
      const [one, two] = start(stage, 2) as [WorldProcess, WorldProcess];
      const redis = stage.process().redis();
      void nest(stage, two, { name: 'b' }, { name: 'a' }, 50);
      await stage.pass(20);
      const second = nest(stage, one, { name: 'a' }, { name: 'b', waitTime: 2_500 }, 700);
      await stage.until(() => notesOn(stage).length > 0);
      const [key = ''] = notesOn(stage);
      const note = (await redis.get(key)) ?? '';
      // It says that its process waits. From here on that may have ended in any way.
      two.crash();
      for (let n = 0; n < 30; n++) {
        await redis.set(key, note);
        await stage.pass(100);
      }
      expect((await second).reason).toBe('timeout');
      expect(deadlocksOf(one)).toEqual([]);
    }));
});

it('a call that waits without an end for the lock around it is a warning and no deadlock, because the holder may go on', () =>
  inWorld(7, async (stage) => {
    const [one] = start(stage, 1) as [WorldProcess];
    const { locks } = one;
    let nested: Promise<string> | undefined;
    for (let round = 0; round < 2; round++) {
      await locks.using('account:7', { label: 'pay' }, async () => {
        const options = { label: 'refund', reentrant: false, waitTime: Infinity };
        nested = locks.using('account:7', options, () => 'refunded');
        await stage.pass(11_000);
      });
      expect(await nested).toBe('refunded');
    }
    expect(deadlocksOf(one)).toEqual([]);
    const warnings = one.events.filter((event) => event.type === 'warning' && event.code === 'self-wait');
    expect(warnings).toMatchObject([{ message: expect.stringContaining('labelled "refund"') as unknown }]);
    // A wait that ends says so itself, and a wait for another's lock is none for itself.
    const asked = { reentrant: false, waitTime: 11_000, label: 'other' };
    await locks.using('account:8', async () => {
      await expect(locks.acquire('account:8', asked)).rejects.toThrow(/own outer call/);
    });
    expect(one.events.filter((event) => event.type === 'warning')).toEqual(warnings);
  }));
