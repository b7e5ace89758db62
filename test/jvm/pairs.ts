import type { Jvm } from './jvm.js';
import type { LockThread } from './lock-thread.js';
import { NodeThread } from './node-thread.js';
import type { Stage } from './stage.js';
import type { Worker } from '../support/worker.js';

/** The sides of a test: the first one holds, the second one looks on. */
export const PAIRS = [
  ['a JVM', 'a Node process'],
  ['a Node process', 'a JVM'],
] as const;

type Side = (typeof PAIRS)[number][number];

/** One process of each side, whose threads play all pairs of a file. */
export class Pair {
  private constructor(
    private readonly jvm: Jvm,
    private readonly node: Worker,
  ) {}

  /** @param watchdog of both sides, ms */
  static async open(stage: Stage, watchdog: number): Promise<Pair> {
    await stage.open();
    return new Pair(...(await Promise.all([stage.jvm(watchdog), stage.node({ leaseTime: watchdog })])));
  }

  /** A caller of a side. The same name is the same caller. */
  thread(side: Side, name: string): LockThread {
    return side === 'a JVM' ? this.jvm.thread(name) : new NodeThread(this.node, name);
  }
}
