import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { now } from '../scenarios/history.js';
import type { RedisServer } from '../support/redis-server.js';
import type { Worker } from '../support/worker.js';
import { describeOnJvm } from './describe-jvm.js';
import { Stage } from './stage.js';

/** ms */
const LEASE = 2_400;
/** How long after its end a waiter of a busy machine may take to notice, ms. */
const LATE = 5_000;
/** What a waiter that was granted the lock has of it before its process has said a word, ms. */
const CLAIM = 1_000;

interface Held {
  granted: number;
  released: number;
}

describeOnJvm('Redisson on a JVM and this package: a process of one crashes', () => {
  const stage = new Stage();
  let server: RedisServer;
  let nodes: Worker[];

  beforeAll(async () => {
    server = await stage.open();
    nodes = await Promise.all(Array.from({ length: 3 }, () => stage.node()));
  });

  afterAll(() => stage.end());

  /** When the lock that is there now ends at the earliest, ms. */
  async function endOf(name: string): Promise<number> {
    const asked = now();
    return asked + (await server.client().pttl(name)) - 1;
  }

  it('a JVM that holds, with three Node processes in line: one after another they get the lock after the lease', async () => {
    const jvm = await stage.jvm(LEASE);
    await jvm.thread('main').lock('crashed before a line');
    const line = nodes.map((node) => node.call<Held>('holdFor', 'crashed before a line', {}, 20));
    await stage.listeners('crashed before a line');
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

  it('a JVM that waits: its entry, if it had one, keeps no waiter away', async () => {
    const jvm = await stage.jvm(LEASE);
    const { id } = await nodes[0]!.call<{ id: number }>('acquire', 'crashed waiter');
    const crashed = expect(jvm.thread('main').lock('crashed waiter')).rejects.toThrow('has ended');
    await stage.listeners('crashed waiter');
    const waiter = nodes[1]!.call<Held>('holdFor', 'crashed waiter', {}, 0);
    await Promise.all([crashed, jvm.kill()]);
    const released = now();
    await nodes[0]!.call('release', id);
    expect((await waiter).granted - released).toBeLessThan(LATE);
  });

  it('a Node process that holds: a thread gets the lock after the lease, and not before', async () => {
    const [jvm, node] = await Promise.all([stage.jvm(), stage.node({ leaseTime: LEASE })]);
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

  it.each([
    ['has crashed', async (node: Worker) => node.kill()],
    [
      'is stopped',
      async (node: Worker) => {
        node.freeze();
      },
    ],
  ])('a Node process that waits %s: a thread gets the lock soon after the release', async (state, strike) => {
    const name = `waiter ${state}`;
    const [jvm, waiter] = await Promise.all([stage.jvm(), stage.node()]);
    const { id } = await nodes[0]!.call<{ id: number }>('acquire', name);
    void waiter.call('acquire', name);
    const thread = jvm.thread('main').lock(name);
    await stage.listeners(name);
    await sleep(2 * CLAIM);
    await strike(waiter);
    const released = now();
    await nodes[0]!.call('release', id);
    const granted = await thread;
    await waiter.kill();
    expect(granted - released).toBeLessThan(CLAIM + LATE);
  });
});
