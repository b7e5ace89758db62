import { describe, expect, it } from '@jest/globals';
import { LockService } from '../../lib/index.js';
import { inWorld, type Stage } from './index.js';

/** Three processes take turns while their connections break. */
async function takeTurns({ process, pass, now }: Stage): Promise<void> {
  const all = [process(), process(), process()];
  await Promise.all([
    ...all.map(async ({ locks }) => {
      while (now() < 400) await locks.using('k', { waitTime: 60_000 }, () => pass(5));
    }),
    pass(100).then(() => {
      all[1]!.disconnect();
      all[2]!.pause(200);
    }),
  ]);
}

describe('A world', () => {
  it('does the same again for the same seed, and something else for another one', async () => {
    const [one, same, other] = [
      await inWorld(1, takeTurns),
      await inWorld(1, takeTurns),
      await inWorld(2, takeTurns),
    ];
    expect(same).toEqual(one);
    expect(other.digest).not.toBe(one.digest);
  });

  it('lets an hour of a held lock pass in a few events per second', async () => {
    const { time, events } = await inWorld(3, async ({ process, pass }) => {
      const lease = await process().locks.acquire('k');
      await pass(3_600_000);
      expect(lease.held).toBe(true);
    });
    expect(time).toBeGreaterThan(3_600_000);
    expect(events).toBeLessThan(4 * 3_600);
  });

  it('has nothing of the package that the test has loaded, such as its clock', async () => {
    new LockService({ store: 'memory' });
    const { time } = await inWorld(8, async ({ process, pass }) => {
      const { locks } = process({ leaseTime: 90, maxHoldTime: 250 });
      const lease = await locks.acquire('k');
      await pass(150);
      expect(lease.held).toBe(true);
      await pass(150);
      expect(lease.signal.reason).toMatchObject({ reason: 'max-hold' });
    });
    expect(time).toBeLessThan(400);
  });

  it('keeps what processes know apart, also for callers inside of each other', async () => {
    await inWorld(4, async ({ process }) => {
      const [a, b] = [process(), process()];
      await a.locks.using('k', async () => {
        // Re-enters in one process, and is another caller in the other one.
        await expect(a.locks.tryAcquire('k')).resolves.not.toBeNull();
        await expect(b.locks.tryAcquire('k')).resolves.toBeNull();
      });
      expect(a.package.LockService).not.toBe(b.package.LockService);
    });
  });

  it('says of a failure the seed and the command that repeats it', async () => {
    const failing = inWorld(9, async ({ process }) => {
      await process().locks.acquire('');
    });
    const command = String.raw`WORLD_SEED=9 npm test -- test/world/world\.spec\.ts -t '.*seed and the command`;
    await expect(failing).rejects.toThrow(new RegExp(`Seed 9, after .* Repeat it with\n${command}`));
  });

  it('says so when a script waits for what cannot happen', async () => {
    const waiting = inWorld(10, () => new Promise(() => undefined));
    await expect(waiting).rejects.toThrow('Nothing is left to happen, and the script still waits');
  });
});
