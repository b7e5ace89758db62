import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { until } from '../scenarios/until.js';
import type { RedisServer } from '../support/redis-server.js';
import type { Worker } from '../support/worker.js';
import { describeOnJvm } from './describe-jvm.js';
import type { Jvm } from './jvm.js';
import { Stage } from './stage.js';
import { overlapping, turnsOf, type Process } from './turns.js';

/** So long that no thread of a busy machine loses its lock, ms. */
const WATCHDOG = 30_000;
/** For turns that are counted, and not timed, ms. */
const PATIENCE = 100_000;
/** Of each JVM, and of each Node process. */
const THREADS = 4;

/** What Redisson's tests of many threads ask for, with half of the threads in Node processes. */
describeOnJvm('Threads of JVMs and as many callers of Node processes count', () => {
  const stage = new Stage();
  let server: RedisServer;
  let jvms: Jvm[];
  let nodes: Worker[];

  beforeAll(async () => {
    server = await stage.open();
    jvms = await Promise.all([stage.jvm(WATCHDOG), stage.jvm(WATCHDOG)]);
    const node = () => stage.node({ waitTime: Infinity, leaseTime: WATCHDOG });
    nodes = await Promise.all([node(), node()]);
  });

  afterAll(() => stage.end());

  /** Each thread and each caller so many times; how often they had the lock. */
  async function countUp(name: string, times: number, wait?: number): Promise<number> {
    const counter = `count of ${name}`;
    const waits = wait === undefined ? {} : { wait };
    const options = { threads: THREADS, time: PATIENCE, counter, times, ...waits };
    const processes = await Promise.all([
      ...jvms.map((jvm) => jvm.thread(name).loop(name, options)),
      ...nodes.map((node) =>
        node.call<Process>('countUp', name, counter, PATIENCE, THREADS, { times, ...waits }),
      ),
    ]);
    expect(overlapping(processes)).toEqual([]);
    const turns = turnsOf(processes).length;
    expect(Number(await server.client().get(counter))).toBe(turns);
    expect(await server.client().exists(name)).toBe(0);
    return turns;
  }

  const all = () => (jvms.length + nodes.length) * THREADS;

  it('under twenty locks at a time: no count is lost', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `lock ${String(index)} of twenty`);
    const turns = await Promise.all(names.map((name) => countUp(name, 3)));
    expect(turns).toEqual(names.map(() => all() * 3));
  });

  it('with a wait of some milliseconds: a turn is counted or not had at all', async () => {
    const turns = await countUp('short waits', 60, 5);
    expect(turns).toBeGreaterThan(0);
    expect(turns).toBeLessThanOrEqual(all() * 60);
  });

  it('with callers that give up all the time: no lock and no subscription is left', async () => {
    const name = 'given up';
    const give = nodes.map((node) => node.call('giveUp', name, 3_000, THREADS));
    const [counted] = await Promise.all([
      Promise.all(jvms.map((jvm) => jvm.thread(name).loop(name, { threads: THREADS, time: 3_000 }))),
      ...give,
    ]);
    expect(overlapping(counted)).toEqual([]);
    expect(turnsOf(counted).length).toBeGreaterThan(0);
    const client = server.client();
    expect(await client.exists(name)).toBe(0);
    await until(async () => (await client.pubsub('CHANNELS', `*${name}*`)).length === 0);
  });
});
