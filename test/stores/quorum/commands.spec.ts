import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import * as scripts from '../../../lib/stores/redis/script.js';
import { QuorumEnvironment } from './quorum-environment.js';

describe('The commands that each node of a quorum gets', () => {
  let environment: QuorumEnvironment;
  let locks: LockService;

  beforeEach(async () => {
    environment = await QuorumEnvironment.of(5);
    locks = environment.quorum();
    await environment.settled(locks);
    for (const node of environment.nodes) {
      for (const { source } of Object.values(scripts)) await node.client().script('LOAD', source);
    }
  });

  afterEach(() => environment.end());

  it('an uncontended cycle: exactly two, also where the answers of a minority come after the release is sent', async () => {
    await (await locks.acquire('warm-up')).release();
    const monitors = await Promise.all(environment.nodes.map((node) => node.monitor()));
    for (let n = 0; n < 100; n++) await (await locks.acquire(`alone:${String(n)}`)).release();
    // A release that has no certain effect is repeated after 250 ms, and again later.
    await sleep(600);
    for (const monitor of monitors) {
      await monitor.stop();
      const sent = monitor.commands.filter(([name]) => name !== 'ping');
      expect(sent.map(([name]) => name)).toEqual(Array.from({ length: 200 }, () => 'evalsha'));
    }
  });
});
