import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { RedisServer } from '../support/redis-server.js';
import type { Worker } from '../support/worker.js';
import { describeOnJvm } from './describe-jvm.js';
import type { Jvm } from './jvm.js';
import { Stage } from './stage.js';
import { mean, most, overlapping, sharesOf, turnsOf, type Process, type Share } from './turns.js';

/** ms */
const SECOND = 1_000;

interface Crowd {
  name: string;
  jvms: readonly Jvm[];
  /** Of each JVM. */
  threads: number;
  /** Of each Node process. */
  callers: number;
  /** ms */
  time: number;
}

describeOnJvm('Redisson on JVMs and Node processes in one loop', () => {
  const stage = new Stage();
  let server: RedisServer;
  let jvms: Jvm[];
  let nodes: Worker[];

  beforeAll(async () => {
    server = await stage.open();
    jvms = await Promise.all([stage.jvm(), stage.jvm()]);
    nodes = await Promise.all(Array.from({ length: 4 }, () => stage.node({ waitTime: Infinity })));
    // The JVMs compile their code meanwhile.
    await loop({ name: 'warm-up', jvms, threads: 2, callers: 1, time: 2 * SECOND });
  });

  afterAll(() => stage.end());

  /** All at once; what each process got. Fails where two had the lock at the same time, or lost a count. */
  async function loop({
    name,
    jvms,
    threads,
    callers,
    time,
  }: Crowd): Promise<[java: Share[], node: Share[]]> {
    const counter = `count of ${name}`;
    const processes = await Promise.all([
      ...jvms.map((jvm) => jvm.thread('loop').loop(name, { threads, time, counter })),
      ...nodes.map((worker) => worker.call<Process>('countUp', name, counter, time, callers)),
    ]);
    expect(overlapping(processes)).toEqual([]);
    expect(Number(await server.client().get(counter))).toBe(turnsOf(processes).length);
    expect(await server.client().exists(name)).toBe(0);
    const shares = sharesOf(processes);
    // By `JVM_REPORT=1 npm run test:all -- test/jvm/loop`.
    if (process.env.JVM_REPORT !== undefined) console.table(shares.map((share) => ({ name, ...share })));
    return [shares.slice(0, jvms.length), shares.slice(jvms.length)];
  }

  /** A side that starves does so each time; one that the machine has kept waiting does not. */
  async function holdsInOneOfThree(
    rule: (run: number) => Promise<[figure: number, holds: boolean]>,
  ): Promise<void> {
    const figures: number[] = [];
    for (let run = 0; run < 3; run++) {
      const [figure, holds] = await rule(run);
      if (holds) return;
      figures.push(figure);
    }
    throw new Error(`In none of three runs: ${String(figures)}`);
  }

  it('two JVMs of two threads and four Node processes: no lost count, and no side gets less than a quarter', () =>
    holdsInOneOfThree(async (run) => {
      const crowd = { jvms, threads: 2, callers: 1, time: 3 * SECOND };
      const [java, node] = await loop({ name: `even ${String(run)}`, ...crowd });
      const ratio = mean(java, 'turns') / mean(node, 'turns');
      return [ratio, ratio >= 1 / 4 && ratio <= 4];
    }));

  it('four callers in each Node process: no lost count', async () => {
    await loop({ name: 'crowded', jvms, threads: 2, callers: 4, time: 2 * SECOND });
  });

  it('a thread waits for a bounded time while four Node processes with four callers each go on', () =>
    holdsInOneOfThree(async (run) => {
      // A thread that starves waits for all of the time.
      const crowd = { jvms: jvms.slice(0, 1), threads: 1, callers: 4, time: 6 * SECOND };
      const [java] = await loop({ name: `steady ${String(run)}`, ...crowd });
      const wait = most(java, 'longestWait');
      return [wait, wait < 5 * SECOND];
    }));
});
