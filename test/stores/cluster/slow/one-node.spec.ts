import { afterAll, describe, expect, it } from '@jest/globals';
import { isLockUnavailableError, type LockEvent, type LockService } from '../../../../lib/index.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = new TestEnvironment();
let cluster: RedisCluster | undefined;

afterAll(async () => {
  await environment.end();
  await cluster?.stop();
});

const NAMES = Array.from({ length: 40 }, (_, n) => `name-${String(n)}`);

const outcomes = (locks: LockService) =>
  Promise.all(
    NAMES.map(async (name) => {
      try {
        await (await locks.acquire(name)).release();
        return 'held';
      } catch (error) {
        return error;
      }
    }),
  );

describe('a node of a cluster, given as a single server', () => {
  it('refuses the names of other nodes for good, also to callers that would wait for ever, and says what to write', async () => {
    cluster = await RedisCluster.start();
    const [first] = await cluster.masters();
    const locks = environment.service({ connection: first!.url, waitTime: Infinity });
    const events: LockEvent[] = [];
    locks.events$.subscribe((event) => events.push(event));

    const found = await outcomes(locks);
    const refused = found.filter((outcome) => outcome !== 'held');
    expect(refused.length).toBeGreaterThan(NAMES.length / 3);
    for (const error of refused) {
      expect(isLockUnavailableError(error)).toBe(true);
      expect(error).toMatchObject({
        permanent: true,
        effect: 'refused',
        cause: {
          message: expect.stringMatching(
            /^it is a node of a cluster, .*\{ cluster: .*: (?:MOVED|CROSSSLOT) /,
          ),
        },
      });
    }
    const health = await locks.health();
    expect(health).toMatchObject({
      status: 'down',
      nodes: [{ status: 'down', error: expect.stringContaining('a node of a cluster') }],
      warnings: [{ code: 'cluster-node' }],
    });
    const told = events.filter((event) => event.type === 'warning' && event.code === 'cluster-node');
    expect(told).toHaveLength(1);
  });
});
