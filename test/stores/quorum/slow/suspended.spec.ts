import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TestEnvironment } from '../../../support/test-environment.js';
import { fenceOf } from '../../../support/keys.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { Suspension } from '../../../support/suspension.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';

const HOUR = 3_600_000;
const LEASE = 20_000;

const suspension = Suspension.make();
const skipped = suspension === undefined ? ' (skipped: its clocks need Linux and a C compiler)' : '';

(skipped === '' ? describe : describe.skip)(
  `A machine that was suspended while the nodes went on${skipped}`,
  () => {
    let environment: TestEnvironment;
    let nodes: RedisServer[];

    beforeEach(async () => {
      suspension?.last(0);
      environment = new TestEnvironment();
      nodes = await Promise.all([1, 2, 3].map(() => environment.server({ env: suspension?.env ?? {} })));
    });

    afterEach(async () => {
      for (const node of nodes) node.thaw();
      await environment.end();
    });

    afterAll(() => suspension?.remove());

    /** A process that reaches some of the nodes only. */
    async function reaching(seen: readonly number[]) {
      const proxies = await Promise.all(nodes.map(({ port }) => TcpProxy.start(port)));
      proxies.forEach((proxy, index) => {
        environment.add(() => proxy.stop());
        proxy.refuse(!seen.includes(index));
      });
      const url = proxies.map((proxy) => proxy.url);
      return await environment.worker({ url, env: suspension?.env ?? {}, service: { leaseTime: LEASE } });
    }

    it('takes a lock away so that the next token is greater, also where the node is frozen that has given the greatest', async () => {
      const admin = await reaching([0, 1, 2]);
      // It knows the clocks of the nodes.
      const { id } = await admin.call<{ id: number }>('acquire', 'other');
      await admin.call('release', id);
      suspension?.last(HOUR);

      const [ab, bc] = [await reaching([0, 1]), await reaching([1, 2])];
      // Further ahead than any number of hand-offs could take a token.
      const ahead = (Date.now() + HOUR + LEASE / 4) * 1_000;
      await nodes[0]!.client().set(fenceOf('lock:a'), `${String(ahead)} former:1`, 'PX', HOUR);
      const before = await ab.call<{ fencingToken: number }>('acquire', 'a');
      nodes[0]!.freeze();
      expect(await admin.call('forceRelease', 'a')).toBe(true);
      const after = await bc.call<{ fencingToken: number }>('acquire', 'a');
      expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    });
  },
);
