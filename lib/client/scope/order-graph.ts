import type { LockOrderStep } from '../../api/lock-order.js';

/** A member of the order: all locks of one client with one label, or one lock without a label. */
export interface OrderedGroup {
  readonly client: string;
  /** The label; without a label, the name. */
  readonly group: string;
}

/** Size at which the graph stops growing. Most processes have some dozens of labels. */
const MOST_GROUPS = 1_000;
const MOST_EDGES = 10_000;

/** A group, with the groups that callers requested under it. */
interface Node {
  readonly after: Map<Node, LockOrderStep>;
}

interface Graph {
  /** By client, then by group, so that each nested call finds a known step without building a string. */
  readonly nodes: Map<string, Map<string, Node>>;
  groups: number;
  edges: number;
  isFull: boolean;
}

const emptyGraph = (): Graph => ({ nodes: new Map(), groups: 0, edges: 0, isFull: false });

/**
 * The order in which callers of this process request locks. A cycle shows that callers may wait for each other for
 * ever, long before they do. Linux's lockdep finds kernel deadlocks by the same rule.
 */
export class LockOrder {
  constructor(private readonly graph: Graph = emptyGraph()) {}

  get isFull(): boolean {
    return this.graph.isFull;
  }

  /** Whether the order of these two groups, each of a client, was checked before. */
  knows(heldBy: string, held: string, acquiredBy: string, acquired: string): boolean {
    const { nodes } = this.graph;
    const own = nodes.get(heldBy);
    const from = own?.get(held);
    if (from === undefined) return false;
    const to = (acquiredBy === heldBy ? own : nodes.get(acquiredBy))?.get(acquired);
    return to !== undefined && from.after.has(to);
  }

  /** The shortest path from one group to the other; undefined if there is none. */
  path(from: OrderedGroup, to: OrderedGroup): readonly LockOrderStep[] | undefined {
    if (from.client === to.client && from.group === to.group) return [];
    const start = this.nodeOf(from);
    const end = this.nodeOf(to);
    if (start === undefined || end === undefined) return undefined;
    const cameBy = new Map<Node, { readonly before: Node; readonly step: LockOrderStep } | undefined>([
      [start, undefined],
    ]);
    for (const node of cameBy.keys()) {
      if (node === end) return stepsTo(end, cameBy);
      for (const [next, step] of node.after) {
        if (!cameBy.has(next)) cameBy.set(next, { before: node, step });
      }
    }
    return undefined;
  }

  /** @returns whether this is the first step that finds the graph full */
  add(held: OrderedGroup, acquired: OrderedGroup, step: LockOrderStep): boolean {
    const { graph } = this;
    if (graph.isFull) return false;
    const isOne = held.client === acquired.client && held.group === acquired.group;
    const isNew = (group: OrderedGroup) => Number(this.nodeOf(group) === undefined);
    const groups = graph.groups + isNew(held) + (isOne ? 0 : isNew(acquired));
    if (groups > MOST_GROUPS || graph.edges >= MOST_EDGES) {
      graph.isFull = true;
      return true;
    }
    this.madeNodeOf(held).after.set(this.madeNodeOf(acquired), step);
    graph.edges++;
    return false;
  }

  /** The client is closed, so its locks are requested no more. */
  forget(client: string): void {
    const { graph } = this;
    const gone = new Set(graph.nodes.get(client)?.values());
    graph.nodes.delete(client);
    graph.groups -= gone.size;
    for (const { after } of gone) graph.edges -= after.size;
    for (const nodes of graph.nodes.values()) {
      for (const { after } of nodes.values()) for (const node of gone) if (after.delete(node)) graph.edges--;
    }
    graph.isFull &&= graph.groups >= MOST_GROUPS || graph.edges >= MOST_EDGES;
  }

  private nodeOf({ client, group }: OrderedGroup): Node | undefined {
    return this.graph.nodes.get(client)?.get(group);
  }

  private madeNodeOf(ordered: OrderedGroup): Node {
    const known = this.nodeOf(ordered);
    if (known !== undefined) return known;
    const { client, group } = ordered;
    const ofClient = this.graph.nodes.get(client) ?? new Map<string, Node>();
    const node: Node = { after: new Map() };
    this.graph.nodes.set(client, ofClient.set(group, node));
    this.graph.groups++;
    return node;
  }
}

function stepsTo(
  end: Node,
  cameBy: ReadonlyMap<Node, { readonly before: Node; readonly step: LockOrderStep } | undefined>,
): readonly LockOrderStep[] {
  const steps: LockOrderStep[] = [];
  for (let by = cameBy.get(end); by !== undefined; by = cameBy.get(by.before)) steps.unshift(by.step);
  return steps;
}

/**
 * One graph for all copies of this package in the process. It is sealed: after a test file, Jest replaces all other
 * fields of objects on globalThis by setters that call themselves.
 */
const GRAPH = Symbol.for('nestjs-distributed-lock.lock-order');
const shared = globalThis as { [GRAPH]?: Graph | undefined };

export const lockOrder = new LockOrder((shared[GRAPH] ??= Object.seal(emptyGraph())));
