import { describe, expect, it } from '@jest/globals';
import { inWorld } from '../../world/index.js';

describe('A process that comes to a quorum', () => {
  it('does not lengthen the longest lease before it wants a lock', () =>
    inWorld(
      1,
      async ({ process, pass }) => {
        const service = process({ leaseTime: 2_000 });
        const lease = await service.locks.acquire('k');
        const { locks } = process({ leaseTime: 60_000 });
        await Promise.all([locks.list(), locks.inspect('k'), locks.health(), locks.requestRelease('k')]);
        await locks.forceRelease('k');
        await pass(1_000);
        const longestLease = async () => (await service.locks.health()).charter?.longestLease;
        expect(await longestLease()).toBe(2_000);
        await lease.release();
        await locks.acquire('k');
        expect(await longestLease()).toBe(60_000);
      },
      { servers: 3 },
    ));

  it('gets its first lock while others found the quorum, whose nodes are not equally far', () =>
    inWorld(
      1,
      async ({ process, pass, servers }) => {
        const processes = [process(), process({ leaseTime: 2_000 }), process()];
        const first = async (one: (typeof processes)[number], index: number) => {
          servers.forEach((server, far) => {
            one.slow('there', 18 * ((index + far) % 3), server);
          });
          await pass([30, 0, 15][index]!);
          return (await one.locks.tryAcquire(`k${String(index)}`))?.held;
        };
        expect(await Promise.all(processes.map(first))).toEqual([true, true, true]);
      },
      { servers: 3 },
    ));
});
