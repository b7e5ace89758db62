import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockModuleOptions } from '../../../lib/index.js';
import { QuorumEnvironment } from '../../stores/quorum/quorum-environment.js';
import { until } from '../until.js';

/** ms after a grant for which the lock may pass on within the process. */
const HANDOFF_TIME = 1_000;

describe('A process that loses a lock while its own callers wait for it', () => {
  let environment: QuorumEnvironment;

  beforeEach(async () => {
    environment = await QuorumEnvironment.of(3);
  });

  afterEach(() => environment.end());

  const topologies: [string, () => Partial<LockModuleOptions>][] = [
    ['a single server', () => ({ connection: environment.node(0).url })],
    ['three nodes', () => ({ nodes: environment.urls })],
  ];
  const cases = topologies.flatMap(([where, options]) =>
    ['forced release', 'deleted key'].map((way) => [where, way, options] as const),
  );

  it.each(cases)('lets none of them in while another has it: %s, %s', async (_, way, options) => {
    const [service, other] = [environment.service(options()), environment.service(options())];
    const granted: number[] = [];
    let holds = true;
    service.events$.subscribe(({ type }) => type === 'acquired' && granted.push(performance.now()));
    const caller = async () => {
      const lease = await service.acquire('a', { waitTime: 60_000 });
      if (holds) await sleep(HANDOFF_TIME * 0.6);
      await lease.release();
    };
    // A process that has heard messages for a while does not look at its holds when they begin to come.
    await service.using('b', () => sleep(1.5 * HANDOFF_TIME));
    granted.length = 0;
    const callers = Array.from({ length: 8 }, caller);
    await until(() => granted.length > 0);
    if (way === 'forced release') {
      await other.forceRelease('a');
    } else {
      // After the look at a hold for which messages have just been asked for.
      await sleep(0.2 * HANDOFF_TIME);
      await Promise.all(environment.nodes.map((node) => node.client().del('lock:a')));
    }
    const present = await other.acquire('a', { waitTime: 60_000 });
    const since = performance.now();
    await sleep(3.5 * HANDOFF_TIME);
    expect(present.held).toBe(true);
    // A deleted key sends no message: what the store has said counts for so long.
    expect(granted.filter((at) => at > since + HANDOFF_TIME)).toEqual([]);
    holds = false;
    await present.release();
    await Promise.all(callers);
    expect(granted).toHaveLength(8);
  });
});
