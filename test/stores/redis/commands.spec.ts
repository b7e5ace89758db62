import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Lease, LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { times } from '../../support/tier.js';
import { serverOfEach } from '../../support/test-servers.js';

describe('The commands that Redis gets', () => {
  const environment = TestEnvironment.ofEach();
  const server = serverOfEach();
  let a: LockService;
  let b: LockService;

  beforeEach(async () => {
    // What connecting costs, and teaching the scripts to a new server, is paid once per process.
    [a, b] = [service(), service()];
    const lease = await a.acquire('warm-up');
    const waiting = b.acquire('warm-up');
    await until(async () => (await a.inspect('warm-up'))?.waiters.processes === 1);
    await lease.extend(30_000);
    await lease.release();
    await (await waiting).release();
  });

  const service = (leaseTime = 30_000) => environment.service({ connection: server.url, leaseTime });

  /** So many scripts have been run since the counters were reset. */
  const sent = (scripts: number) =>
    until(async () => ((await server.commandCalls()).evalsha ?? 0) >= scripts);

  /** What is sent while `work` runs. */
  async function during(work: () => Promise<void>): Promise<string[][]> {
    const monitor = await server.monitor();
    await work();
    await monitor.stop();
    // The warmed-up channel may be given up meanwhile, and an idle connection is asked whether it still is one.
    return monitor.commands.filter(([name]) => name !== 'unsubscribe' && name !== 'ping');
  }

  it('an uncontended cycle: exactly two', async () => {
    const commands = await during(async () => {
      for (let n = 0; n < 50; n++) await (await a.acquire('alone')).release();
    });
    expect(commands.map(([name]) => name)).toEqual(Array.from({ length: 100 }, () => 'evalsha'));
  });

  it('a hand-over with a waiter behind it, again and again: one message each, also where a millisecond ends within the script', async () => {
    const HANDOVERS = times(100, 300);
    const circle = [a, b, service()];
    let lease = await a.acquire('in a circle');
    const waiting: Promise<Lease>[] = [];
    const queue = async (locks: LockService, behind: number) => {
      waiting.push(locks.acquire('in a circle'));
      await until(async () => (await a.inspect('in a circle'))?.waiters.processes === behind + 1);
    };
    await queue(circle[1]!, 0);
    await queue(circle[2]!, 1);
    await server.resetCommandCalls();
    for (let n = 0; n < HANDOVERS; n++) {
      await lease.release();
      lease = await waiting.shift()!;
      await queue(circle[n % 3]!, 1);
    }
    expect((await server.commandCalls()).publish).toBe(HANDOVERS);
    await lease.release();
    for (const next of waiting) await (await next).release();
  });

  it('one alone leaves at once, and not with the end of its turn', async () => {
    const client = environment.client(new Redis(server.url));
    const c = environment.service({ connection: client });
    await (await c.acquire('warm-up')).release();
    const write = jest.spyOn(client, 'sendCommand');
    const acquired = c.acquire('alone');
    expect(write).toHaveBeenCalledTimes(1);
    await (await acquired).release();
  });

  it('a re-entry: none', async () => {
    await a.using('outer', async (outer) => {
      const commands = await during(async () => {
        for (let n = 0; n < 10; n++) {
          await a.using('outer', async (inner) => {
            expect(inner.fencingToken).toBe(outer.fencingToken);
          });
          await (await a.acquire('outer', { leaseTime: 5_000 })).release();
        }
      });
      expect(commands).toEqual([]);
    });
  });

  it('100 waiters of one process: fewer than one for five acquisitions', async () => {
    const acquired: number[] = [];
    const commands = await during(async () => {
      await Promise.all(
        Array.from({ length: 100 }, () =>
          a.using('popular', async ({ fencingToken }) => {
            acquired.push(fencingToken);
          }),
        ),
      );
    });
    expect(new Set(acquired).size).toBe(100);
    expect(commands.length).toBeGreaterThanOrEqual(2);
    expect(commands.length / 100).toBeLessThan(0.2);
  });

  it('a waiter behind another process: one more than without it, which takes its entry', async () => {
    const { owner, release } = await a.acquire('contended').then((lease) => ({
      owner: lease.owner,
      release: () => lease.release(),
    }));
    let taken: Lease | undefined;
    const commands = await during(async () => {
      await server.resetCommandCalls();
      const waiting = b.acquire('contended');
      await sent(1);
      await release();
      taken = await waiting;
      await taken.release();
    });
    const who = (argument: string) => (argument === owner ? 'a' : 'b');
    const trace = commands.map(([name = '', , , lock = '', , , argument = '']) =>
      name === 'evalsha' ? `${who(argument)} on ${lock}` : name,
    );
    // The second gives it up, and b has it by that.
    expect(trace).toEqual(['b on lock:contended', 'a on lock:contended', 'b on lock:contended']);
    expect(commands[0]?.[6]).toBe(taken?.owner);
  });

  it('take any number of names at once, more than Lua passes to one call', async () => {
    const names = Array.from({ length: 8_100 }, (_, n) => `many:${String(n)}`);
    // A busy machine needs a while for so many.
    const lease = await a.acquire(names, { leaseTime: '5m' });
    expect(lease.fencingTokens.size).toBe(8_100);
    expect(await b.tryAcquire(['one', 'many:8099'])).toBeNull();
    await lease.release();
    await (await b.acquire(['one', 'many:8099'])).release();
  });
});
