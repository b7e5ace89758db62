import { beforeEach, describe, expect, it } from '@jest/globals';
import * as scripts from '../../../support/scripts.js';
import type { LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import type { Monitor } from '../../../support/monitor.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import { QuorumEnvironment } from '../quorum-environment.js';
import { lockKeys } from '../../../support/keys.js';

describe('What a quorum gives back', () => {
  const environment = QuorumEnvironment.forEach(5);
  let proxies: TcpProxy[];
  let locks: LockService;

  beforeEach(async () => {
    proxies = await environment.proxies();
    locks = environment.quorum(
      { leaseTime: 300_000 },
      proxies.map(({ url }) => url),
    );
    await environment.settled(locks);
    for (const node of environment.nodes) {
      for (const { source } of Object.values(scripts)) await node.client().script('LOAD', source);
    }
  });

  const monitors = () => Promise.all(environment.nodes.map((node) => node.monitor()));

  /** The acquisitions and releases of one lock that came to a node, in their order. */
  async function orderOn(monitor: Monitor): Promise<string[]> {
    await monitor.stop();
    return monitor.commands.flatMap(([command, which]) => {
      if (command?.toLowerCase() !== 'evalsha') return [];
      if (which === scripts.acquire.sha) return ['acquire'];
      return which === scripts.release.sha ? ['release'] : [];
    });
  }

  const isReleased = ({ commands }: Monitor) => commands.some(([, which]) => which === scripts.release.sha);

  async function expectReleasesLast(watching: readonly Monitor[]): Promise<void> {
    await until(() => watching.every(isReleased));
    for (const monitor of watching) {
      const [first, ...rest] = await orderOn(monitor);
      expect(first).toBe('acquire');
      expect(rest).toContain('release');
      expect(rest).not.toContain('acquire');
    }
    await environment.isFreeEverywhere('a');
  }

  it('comes behind the request that is still under way to a node', async () => {
    const watching = await monitors();
    proxies[4]?.requestDelay(300);
    const lease = await locks.acquire('a');
    await lease.release();
    await expectReleasesLast(watching);
  });

  it('is given back on all nodes when the caller aborts while requests are under way', async () => {
    const watching = await monitors();
    for (const proxy of proxies) proxy.requestDelay(1_000);
    const gone = new AbortController();
    const acquiring = locks.acquire('a', { signal: gone.signal });
    await until(() => proxies.every((proxy) => proxy.underway('requests') > 0));
    gone.abort(new Error('not any more'));
    await expect(acquiring).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await expectReleasesLast(watching);
  });

  it('leaves nothing but its fence, after waits, aborts and failures', async () => {
    const rival = environment.quorum();
    await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        const service = n % 2 === 0 ? locks : rival;
        const lease = await service.tryAcquire('a', { waitTime: n % 3 === 0 ? 50 : 60_000 });
        await lease?.release();
        await (await service.acquire(['a', 'b', 'c'])).release();
      }),
    );
    for (const node of environment.nodes) {
      await until(async () => (await lockKeys(node.client(), '*')).length === 0);
      // The charter stays.
      for (const key of (await node.client().keys('*')).filter((one) => one !== '~ndl:quorum'))
        expect(await node.client().pttl(key)).toBeGreaterThan(0);
    }
  });
});
