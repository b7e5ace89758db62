import { expect, it } from '@jest/globals';
import { times } from '../support/tier.js';
import { inWorld } from '../world/index.js';

it('a multi-lock that is aborted between two of its attempts takes nothing any more', async () => {
  await inWorld(1, async ({ process, pass }) => {
    const holder = process();
    const { locks } = process();
    const TRIES = times(40, 100);
    for (let n = 0; n < TRIES; n++) {
      const [a, b] = ['a', 'b'].map((name) => `${name}:${String(n)}`) as [string, string];
      const first = await holder.locks.acquire(b);
      const controller = new AbortController();
      const asked = locks
        .getMultiLock([locks.getLock(a), locks.getLock(b)])
        .acquire({ signal: controller.signal, waitTime: 60_000 });
      const refused = expect(asked).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      await pass(10);
      // It gets b now, finds a busy, gives b back, and sleeps for up to 4 ms before its next attempt.
      const second = await holder.locks.acquire(a);
      await first.release();
      await pass((n * 8) / TRIES);
      controller.abort();
      await refused;
      await second.release();
      await pass(50);
      for (const name of [a, b]) expect(await holder.locks.inspect(name)).toBeNull();
    }
  });
});
