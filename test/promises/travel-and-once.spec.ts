import { describe, expect, it } from '@jest/globals';
import { roleOf } from '../support/keys.js';
import { inWorld } from '../world/index.js';

describe('Leases that travel', () => {
  it('Never free between: no other owner gets in, one process goes on, the first process has stopped, and tokens grow', () =>
    inWorld(1, async ({ process, server, pass }) => {
      const [first, second, third, other] = [process(), process(), process(), process()];
      const lease = await first.locks.acquire('k');
      const waiting = other.locks.acquire('k', { waitTime: 60_000 });
      let inside = false;
      void waiting.then(() => (inside = true));
      await pass(100);
      const ticket = await lease.handOver({ within: 5_000 });
      expect(lease.held).toBe(false);
      await pass(4_000);
      const tries = await Promise.allSettled(
        [second, third, second].map(({ locks }) => locks.resume(ticket)),
      );
      const resumed = tries.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(resumed).toHaveLength(1);
      expect(resumed[0]!.fencingToken).toBeGreaterThan(lease.fencingToken);
      await lease.release();
      // Longer than the lease: its renewals are those of the process that goes on.
      await pass(40_000);
      expect([inside, resumed[0]!.held]).toEqual([false, true]);
      await resumed[0]!.release();
      await (await waiting).release();
      expect(server.keys.filter((key) => roleOf(key) === undefined)).toEqual([]);
    }));

  it.each([1, 2, 3])(
    'No orphan: a resume whose answer is lost is found out, or taken back (seed %i)',
    (seed) =>
      inWorld(seed, async ({ process, server, until }) => {
        const [first, second] = [process(), process()];
        await second.locks.health();
        const ticket = await (await first.locks.acquire('k')).handOver();
        second.silence('back', 8_000);
        const lease = await second.locks.resume(ticket).catch(() => undefined);
        await lease?.release();
        await until(() => server.keys.every((key) => roleOf(key) !== undefined));
      }),
  );
});

describe('Once per period', () => {
  it('One success in a period: of the calls of three processes one runs, and again when the period has ended', () =>
    inWorld(2, async ({ process, now, pass }) => {
      const all = [process(), process(), process()];
      const runs: number[] = [];
      const call = ({ locks }: (typeof all)[number]) =>
        locks.once('report', { period: '1h' }, async () => {
          runs.push(now());
          await pass(500);
        });
      await Promise.all([...all, ...all].map(call));
      for (let n = 0; n < 6; n++) {
        await pass(600_000);
        await call(all[n % 3]!);
      }
      await pass(60_000);
      await Promise.all(all.map(call));
      expect(runs).toHaveLength(2);
      // From the end of the first run on, to half a percent.
      expect(runs[1]! - runs[0]!).toBeGreaterThan(3_580_000);
    }));

  it('Only the holder notes, and a failure or a crash notes nothing: the next call tries', () =>
    inWorld(3, async ({ process, pass }) => {
      const [dead, late, failing, next] = [process(), process({ leaseTime: 3_000 }), process(), process()];
      let runs = 0;
      const work = () => runs++;
      void dead.locks.once('report', { period: '1h' }, () => pass(5_000)).catch(() => undefined);
      await pass(1_000);
      dead.crash();
      const slow = late.locks.once('report', { period: '1h', waitTime: 60_000 }, async () => {
        late.pause(10_000);
        await pass(12_000);
      });
      await expect(
        failing.locks.once('report', { period: '1h', waitTime: 60_000 }, () =>
          Promise.reject(new TypeError('no paper')),
        ),
      ).rejects.toThrow('no paper');
      await slow.catch(() => undefined);
      expect(await next.locks.once('report', { period: '1h', waitTime: 60_000 }, work)).toMatchObject({
        ran: true,
      });
      expect(runs).toBe(1);
    }));
});
