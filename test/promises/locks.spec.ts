import { describe, expect, it } from '@jest/globals';
import { overlaps, tokensGrow } from '../scenarios/history.js';
import { race } from '../world/holds.js';
import { inWorld } from '../world/index.js';

const PATIENT = { waitTime: 120_000 };

describe('Locks', () => {
  it('Exclusion: callers of three processes hold it one after another, while connections break and a process stands still', () =>
    inWorld(1, async (stage) => {
      const all = [stage.process(), stage.process(), stage.process()];
      const locks = all.map((one) => one.locks.getLock('k'));
      const [records] = await Promise.all([
        race(stage, locks, 20, PATIENT, 20),
        stage.pass(200).then(() => {
          all[0]!.disconnect();
          all[1]!.pause(300);
        }),
        stage.pass(700).then(() => {
          all[2]!.disconnect();
        }),
      ]);
      const kept = records.filter(({ lost }) => !lost);
      expect(kept).toHaveLength(60);
      expect(overlaps(kept)).toEqual([]);
      expect(tokensGrow(kept)).toBe(true);
    }));

  it('Only the holder releases: a late release and a second one change nothing', () =>
    inWorld(2, async ({ process, server, until }) => {
      const [late, next] = [process(), process()];
      const first = await late.locks.acquire('k', { leaseTime: 1_000 });
      await until(() => !first.held);
      const second = await next.locks.acquire('k', { waitTime: 5_000 });
      await first.release();
      await first.release();
      expect(second.held).toBe(true);
      expect((await late.locks.inspect('k'))?.holders[0]?.owner).toBe(second.owner);
      await second.release();
      const third = await late.locks.acquire('k');
      await second.release();
      expect(third.held).toBe(true);
      await third.release();
      expect(server.keys).toEqual([]);
    }));

  it.each(['plain', 'fair', 'write', 'semaphore'])(
    'No deadlock by crashes: a %s lock is free after the lease of a dead holder',
    (kind) =>
      inWorld(3, async ({ process, now }) => {
        const [dead, next] = [process(), process()];
        const lockOf = ({ locks }: typeof dead) =>
          ({
            plain: locks.getLock('k'),
            fair: locks.getFairLock('k'),
            write: locks.getReadWriteLock('k').write,
            semaphore: locks.getSemaphore('k', 1),
          })[kind]!;
        await lockOf(dead).acquire();
        const waiting = lockOf(next).acquire(PATIENT);
        const moment = now();
        dead.crash();
        const lease = await waiting;
        expect(lease.held).toBe(true);
        // A tenth more for clocks and for the pause before the next try.
        expect(now() - moment).toBeLessThan(33_000);
      }),
  );

  it.each([1, 3])(
    'Deadlocks are found, by processes on %i servers: one caller ends, and the other goes on',
    (servers) =>
      inWorld(
        4,
        async ({ process, pass }) => {
          const all = ['api-1', 'api-2'].map((label) => process({ label, lockOrder: 'off' }));
          const [one, two] = all.map(({ locks }) => locks);
          const outcome = (work: Promise<unknown>) =>
            work.then(
              () => 'done',
              (error: unknown) => (error as { reason: string }).reason,
            );
          const first = outcome(
            one!.using('a', async () => {
              await pass(100);
              await one!.using('b', { waitTime: 30_000 }, () => undefined);
            }),
          );
          const second = outcome(
            two!.using('b', async () => {
              await pass(600);
              await two!.using('a', { waitTime: 30_000 }, () => undefined);
            }),
          );
          // Which of them began last, processes know by wall clocks, which are seconds apart here.
          expect((await Promise.all([first, second])).sort()).toEqual(['deadlock', 'done']);
          for (const { events } of all)
            expect(events.filter(({ type }) => type === 'deadlock')).toHaveLength(1);
        },
        { servers },
      ),
  );

  it.each(['frozen', 'gone', 'empty'])(
    'The holder is told: at its deadline at the latest, whether or not Redis answers (%s)',
    (way) =>
      inWorld(5, async ({ process, server, until }) => {
        const holder = process();
        const lease = await holder.locks.acquire('k', { leaseTime: 3_000, renew: true });
        const deadline = () => holder.clock + lease.remainingTime();
        const promised = deadline();
        if (way === 'frozen') server.pause(60_000);
        else server.crash();
        if (way === 'empty') server.restart({ empty: true });
        let told = Infinity;
        lease.signal.addEventListener('abort', () => (told = holder.clock));
        await until(() => lease.signal.aborted);
        // A renewal that was under way may have been answered.
        expect(told).toBeLessThan(promised + 1_000 + 50);
        expect(lease.held).toBe(false);
      }),
  );

  it('The holder is told of a forced release at once, and which service took the lock', () =>
    inWorld(6, async ({ process, pass, until, now }) => {
      const [holder, other] = [process(), process({ label: 'console' })];
      const lease = await holder.locks.acquire('k', { leaseTime: 60_000 });
      await pass(1_500);
      const moment = now();
      await other.locks.forceRelease('k', { reason: 'stuck' });
      await until(() => lease.signal.aborted);
      expect(now() - moment).toBeLessThan(100);
      expect(lease.signal.reason).toMatchObject({ forced: { by: 'console', reason: 'stuck' } });
    }));

  it.each([1, 2, 3, 4, 5])('Lost replies are undone: no lock of a lost reply stays (seed %i)', (seed) =>
    inWorld(seed, async ({ process, server, until, pass }) => {
      const [unlucky, other] = [process(), process()];
      await Promise.all([unlucky.locks.health(), other.locks.health()]);
      unlucky.silence('back', 10_000);
      await expect(unlucky.locks.acquire('k', { waitTime: 500 })).rejects.toMatchObject({
        code: 'LOCK_UNAVAILABLE',
      });
      await pass(10_000);
      await until(() => server.keys.length === 0);
      await (await other.locks.acquire('k')).release();
    }),
  );

  it('Fail closed: no Redis is an error of its own, and no run', () =>
    inWorld(7, async ({ process, server }) => {
      const [caller, other] = [process(), process()];
      const lease = await other.locks.acquire('k');
      await expect(caller.locks.acquire('k', { waitTime: 100 })).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
      });
      await lease.release();
      server.crash();
      let ran = false;
      const work = caller.locks.using('k', { waitTime: 3_000 }, () => (ran = true));
      await expect(work).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      expect(ran).toBe(false);
    }));

  it.each([1, 2, 3, 4, 5])(
    'No lost wake-up: while messages are lost, too, the last of ten waiters is served (seed %i)',
    (seed) =>
      inWorld(seed, async (stage) => {
        const all = [stage.process(), stage.process()];
        await Promise.all(all.map(({ locks }) => locks.health()));
        all[1]!.dropMessages();
        const records = await race(
          stage,
          all.map(({ locks }) => locks.getLock('k')),
          5,
          PATIENT,
          5,
        );
        expect(records).toHaveLength(10);
        expect(overlaps(records)).toEqual([]);
      }),
  );
});
