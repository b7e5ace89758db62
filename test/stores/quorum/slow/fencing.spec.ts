import { describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { QuorumEnvironment } from '../quorum-environment.js';
import { fenceOf } from '../../../support/keys.js';

const LEASE = 4_000;

/**
 * Two majorities of three nodes have one in common, and it alone carries the token from the one to the next. A node whose
 * clock is ahead is played by one whose fence is.
 */
describe('Fencing tokens of a quorum of three', () => {
  const environment = QuorumEnvironment.forEach(3);

  /** The clock of a node is so many ms ahead of the machine's. */
  const setAhead = async (index: number, ms: number) => {
    const now = (Date.now() + ms) * 1_000;
    await environment
      .node(index)
      .client()
      .set(fenceOf('lock:a'), `${String(now)} former:1`, 'PX', 3_600_000);
  };

  /** A process of its own that reaches some of the nodes only. */
  async function reaching(seen: readonly number[], leaseTime = LEASE): Promise<LockService> {
    const proxies = await environment.proxies();
    const urls = proxies.map(({ url }) => url);
    const service = environment.quorum({ leaseTime }, urls);
    // The nodes learn its names for them before some are out of reach.
    await environment.settled(service);
    proxies.forEach((proxy, index) => {
      if (seen.includes(index)) return;
      proxy.refuse(true);
      proxy.cut();
    });
    return service;
  }

  const everyone = async (leaseTime = LEASE) => {
    // All nodes have to know that the quorum is in service, or it is founded by two of them.
    const service = environment.quorum({ leaseTime });
    await environment.settled(service);
    return service;
  };

  /** @returns the token */
  async function take(service: LockService, { crash }: { crash: boolean }): Promise<number> {
    const lease = await service.acquire('a', { leaseTime: LEASE });
    if (!crash) await lease.release();
    return lease.fencingToken;
  }

  it.each([
    ['released', false],
    ['left to its end', true],
  ])('grow from one majority to the next, when the lock is %s', async (_, crash) => {
    await everyone();
    const [ab, bc, ca] = [await reaching([0, 1]), await reaching([1, 2]), await reaching([2, 0])];
    const tokens: number[] = [];
    for (const service of [ab, bc, ca, bc, ab, ca]) tokens.push(await take(service, { crash }));
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  it.each([
    ['released', false],
    ['left to its end', true],
  ])('grow where a clock was an hour ahead and its node is gone, when the lock is %s', async (_, crash) => {
    await everyone();
    const [ab, bc] = [await reaching([0, 1]), await reaching([1, 2])];
    await setAhead(0, 3_600_000);
    const first = await take(ab, { crash });
    expect(first).toBeGreaterThan((Date.now() + 3_500_000) * 1_000);
    await environment.node(0).kill();
    const second = await take(bc, { crash });
    expect(second).toBeGreaterThan(first);
    expect(await take(bc, { crash: false })).toBeGreaterThan(second);
  });

  it('grow after a lock was taken away, also beyond the tokens that its holder had handed on', async () => {
    const admin = await everyone();
    const [ab, bc] = [await reaching([0, 1]), await reaching([1, 2])];
    await setAhead(0, LEASE / 3);
    const tokens: number[] = [];
    let holding = 0;
    const work = Array.from({ length: 5 }, () =>
      ab
        .using('a', async ({ fencingToken, signal }) => {
          tokens.push(fencingToken);
          holding++;
          if (holding === 5) await until(() => signal.aborted);
        })
        .catch(() => undefined),
    );
    await until(() => holding === 5);
    expect(await admin.forceRelease('a')).toBe(true);
    expect(await take(bc, { crash: false })).toBeGreaterThan(tokens.at(-1)!);
    await Promise.all(work);
  });

  it('grow after a lock was taken away many times in a row, where one node has restarted since and the other is gone', async () => {
    // Each of 20 calls has to be answered by a majority, and of this a node has 5 % to do so.
    const leaseTime = 3 * LEASE;
    const admin = await everyone(leaseTime);
    const [ab, bc] = [await reaching([0, 1], leaseTime), await reaching([1, 2], leaseTime)];
    let last = 0;
    for (let n = 0; n < 10; n++) {
      const { fencingToken } = await ab.acquire('a');
      expect(fencingToken).toBeGreaterThan(last);
      last = fencingToken;
      expect(await admin.forceRelease('a')).toBe(true);
    }
    last = await take(ab, { crash: true });
    await environment.node(1).restart();
    await environment.node(0).kill();
    expect(await take(bc, { crash: false })).toBeGreaterThan(last);
  });
});
