import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { now } from '../scenarios/history.js';
import type { RedisServer } from '../support/redis-server.js';
import { describeOnJvm } from './describe-jvm.js';
import { Stage } from './stage.js';

/** ms */
const LEASE = 2_400;
/** How long after its end a waiter of a busy machine may take to notice, ms. */
const LATE = 5_000;

describeOnJvm('Redisson on a JVM and this package: a holder of one crashes', () => {
  const stage = new Stage();
  let server: RedisServer;

  beforeAll(async () => {
    server = await stage.open();
  });

  afterAll(() => stage.end());

  /** When the lock that is there now ends at the earliest, ms. */
  async function endOf(name: string): Promise<number> {
    const asked = now();
    return asked + (await server.client().pttl(name)) - 1;
  }

  it('a JVM: a Node process gets the lock after the lease, and not before', async () => {
    const [jvm, node] = await Promise.all([stage.jvm(LEASE), stage.node()]);
    await jvm.thread('main').lock('crashed jvm');
    const waiter = node.call<{ granted: number }>('holdFor', 'crashed jvm', {}, 0);
    await stage.listeners('crashed jvm');
    const end = await endOf('crashed jvm');
    await jvm.kill();
    const latest = now() + LEASE + LATE;
    const { granted } = await waiter;
    expect(granted).toBeGreaterThanOrEqual(end);
    expect(granted).toBeLessThan(latest);
  });

  it('a Node process: a thread gets the lock after the lease, and not before', async () => {
    const [jvm, node] = await Promise.all([stage.jvm(LEASE), stage.node({ leaseTime: LEASE })]);
    await node.call('acquire', 'crashed node');
    const waiter = jvm.thread('main').lock('crashed node');
    await stage.listeners('crashed node');
    const end = await endOf('crashed node');
    await node.kill();
    const latest = now() + LEASE + LATE;
    const granted = await waiter;
    expect(granted).toBeGreaterThanOrEqual(end);
    expect(granted).toBeLessThan(latest);
  });

  it('a JVM with four Node processes in line: one after another they get the lock after the lease', async () => {
    const jvm = await stage.jvm(LEASE);
    const nodes = await Promise.all(Array.from({ length: 4 }, () => stage.node()));
    await jvm.thread('main').lock('crashed before a line');
    const line = nodes.map((node) =>
      node.call<{ granted: number; released: number }>('holdFor', 'crashed before a line', {}, 20),
    );
    await stage.listeners('crashed before a line', nodes.length);
    const end = await endOf('crashed before a line');
    await jvm.kill();
    const latest = now() + LEASE + LATE;
    const holds = (await Promise.all(line)).sort((one, other) => one.granted - other.granted);
    let free = end;
    for (const { granted, released } of holds) {
      expect(granted).toBeGreaterThanOrEqual(free);
      expect(granted).toBeLessThan(latest);
      free = released;
    }
  });

  it('a JVM that waits: its place, if it had one, keeps nobody away', async () => {
    const [jvm, holder, next] = await Promise.all([stage.jvm(LEASE), stage.node(), stage.node()]);
    const { id } = await holder.call<{ id: number }>('acquire', 'crashed waiter');
    const crashed = expect(jvm.thread('main').lock('crashed waiter')).rejects.toThrow('has ended');
    await stage.listeners('crashed waiter');
    const waiter = next.call<{ granted: number }>('holdFor', 'crashed waiter', {}, 0);
    await Promise.all([crashed, jvm.kill()]);
    const released = now();
    await holder.call('release', id);
    expect((await waiter).granted - released).toBeLessThan(LATE);
  });
});
