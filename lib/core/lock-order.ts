import type { LockOrderStep } from '../lock.order.js';

/** A group of locks in the order: all locks of one client that have one label, or one lock without a label. */
export interface OrderedGroup {
  readonly client: string;
  /** The label; the name where the lock has no label of its own. */
  readonly group: string;
}

/** Beyond these the graph takes up nothing more. A process has some dozens of labels, mostly. */
const MOST_GROUPS = 1_000;
const MOST_EDGES = 10_000;

interface Graph {
  /** By the key of the held group, then by the key of the acquired one. */
  readonly edges: Map<string, Map<string, LockOrderStep>>;
  readonly groups: Set<string>;
  count: number;
  isFull: boolean;
}

const keyOf = ({ client, group }: OrderedGroup): string => `${client} ${group}`;

/**
 * Which locks were asked for under which others in this process. A cycle among them shows that callers may wait for each
 * other for ever, long before they do. Linux's lockdep finds the deadlocks of a kernel by the same rule.
 */
export class LockOrder {
  private readonly graph: Graph;

  constructor(graph?: Graph) {
    this.graph = graph ?? { edges: new Map(), groups: new Set(), count: 0, isFull: false };
  }

  get isFull(): boolean {
    return this.graph.isFull;
  }

  /** Whether the order of these two has been looked at before. */
  knows(held: OrderedGroup, acquired: OrderedGroup): boolean {
    return this.graph.edges.get(keyOf(held))?.has(keyOf(acquired)) === true;
  }

  /** The steps from one group to the other, the fewest; undefined where there are none. */
  path(from: OrderedGroup, to: OrderedGroup): readonly LockOrderStep[] | undefined {
    const start = keyOf(from);
    const end = keyOf(to);
    const cameBy = new Map<string, { readonly before: string; readonly step: LockOrderStep } | undefined>([
      [start, undefined],
    ]);
    for (const key of cameBy.keys()) {
      if (key === end) return stepsTo(end, cameBy);
      for (const [next, step] of this.graph.edges.get(key) ?? []) {
        if (!cameBy.has(next)) cameBy.set(next, { before: key, step });
      }
    }
    return undefined;
  }

  /** @returns whether it is the first step for which there is no room */
  add(held: OrderedGroup, acquired: OrderedGroup, step: LockOrderStep): boolean {
    const { graph } = this;
    if (graph.isFull) return false;
    const from = keyOf(held);
    const to = keyOf(acquired);
    const groups =
      graph.groups.size + Number(!graph.groups.has(from)) + Number(from !== to && !graph.groups.has(to));
    if (groups > MOST_GROUPS || graph.count >= MOST_EDGES) {
      graph.isFull = true;
      return true;
    }
    graph.groups.add(from).add(to);
    const edges = graph.edges.get(from) ?? new Map<string, LockOrderStep>();
    graph.edges.set(from, edges.set(to, step));
    graph.count++;
    return false;
  }

  /** The client is closed: its locks are not asked for any more. */
  forget(client: string): void {
    const { graph } = this;
    const isIts = (key: string) => key.startsWith(`${client} `);
    for (const key of graph.groups) if (isIts(key)) graph.groups.delete(key);
    for (const [from, edges] of graph.edges) {
      for (const to of edges.keys()) if ((isIts(from) || isIts(to)) && edges.delete(to)) graph.count--;
      if (edges.size === 0) graph.edges.delete(from);
    }
    graph.isFull &&= graph.groups.size >= MOST_GROUPS || graph.count >= MOST_EDGES;
  }
}

function stepsTo(
  end: string,
  cameBy: ReadonlyMap<string, { readonly before: string; readonly step: LockOrderStep } | undefined>,
): readonly LockOrderStep[] {
  const steps: LockOrderStep[] = [];
  for (let by = cameBy.get(end); by !== undefined; by = cameBy.get(by.before)) steps.unshift(by.step);
  return steps;
}

/** One graph for all copies of this package in the process. */
const GRAPH = Symbol.for('nestjs-distributed-lock.lock-order');
const shared = globalThis as { [GRAPH]?: Graph | undefined };

export const lockOrder = new LockOrder(
  (shared[GRAPH] ??= { edges: new Map(), groups: new Set(), count: 0, isFull: false }),
);
