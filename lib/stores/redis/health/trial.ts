import { RESERVED } from '../../../store/lock-store.js';
import type { HealthStatus } from '../../../store/store-health.js';
import type { Deployment, Server } from '../connection/deployment.js';
import { QUEUE_CHANNEL } from '../messages/queue-protocol.js';
import { reasonOf, replyCode, UnexpectedReply } from '../connection/redis-errors.js';
import type { Replication } from '../commands/replication.js';
import * as scripts from '../commands/script.js';
import type { ScriptCalls } from '../commands/script-calls.js';

/** ms: the lock of a trial is gone when its script ends, so this matters to no other process. */
const LEASE = 1_000;

/** How many names are tried until one belongs to a master: enough for a master with a thousandth of all slots. */
const MOST_NAMES = 20_000;

/** The abilities of a server for locks, and why it is not `up`. */
export interface Finding {
  readonly status: HealthStatus;
  readonly error: string | undefined;
}

/**
 * Finds out whether a lock can be taken and kept now, by taking one. A user that may not run scripts, a command that the
 * provider has renamed, a full disk or missing replicas leave a server that still answers PING and INFO.
 */
export class Trial {
  private readonly names = new WeakMap<Server, string>();

  constructor(
    private readonly connection: Deployment,
    private readonly calls: Pick<ScriptCalls, 'keys' | 'publishing'>,
    private readonly replication: Replication | undefined,
  ) {}

  /** Never rejects, and takes as long as an acquisition at most. */
  async at(node: Server): Promise<Finding> {
    const { connection, calls, replication } = this;
    try {
      await connection.learnSharding();
      const name = this.nameAt(node);
      // A master without slots has no locks.
      if (name === undefined) return UP;
      const its = calls.keys(name);
      const [publish, channel] = calls.publishing(its);
      const place = connection.isCluster ? 'cluster' : '';
      const confirmed = replication === undefined ? 0 : 1;
      const args = ['trial', LEASE, publish, channel, confirmed, `${QUEUE_CHANNEL}trial`, place];
      const lacks = await connection.run(scripts.trial, [its.lock, its.fence, its.queue], args);
      await replication?.confirm(node);
      if (!Array.isArray(lacks)) throw new UnexpectedReply(lacks);
      return lacks.length > 0 ? lacking(lacks.map(String)) : UP;
    } catch (error) {
      if (replyCode(error) === 'OOM') return FULL;
      return { status: 'down', error: reasonOf(error) };
    }
  }

  /** A lock that lives on that node, by a name that no caller can give. */
  private nameAt(node: Server): string | undefined {
    const { connection, calls } = this;
    // No name leads to a node without a connection, and a search would look at all of them. PING reports the node.
    if (connection.isCluster && node.isDown) return undefined;
    const livesThere = (name: string) => connection.nodeOf(calls.keys(name).lock)?.node === node.node;
    let name = this.names.get(node);
    // Slots move.
    for (let tag = 0; tag < MOST_NAMES && (name === undefined || !livesThere(name)); tag++)
      name = `{${String(tag)}}${RESERVED}trial`;
    if (name === undefined || !livesThere(name)) return undefined;
    this.names.set(node, name);
    return name;
  }
}

/** @param lacks commands, each followed by the error with which it is refused */
function lacking(lacks: readonly string[]): Finding {
  const each = lacks.flatMap((command, at) => (at % 2 === 0 ? [`${command}: ${lacks[at + 1] ?? ''}`] : []));
  // The two kinds of channels are mostly refused for the same reason.
  const told = [...new Set(each)].join('; ');
  const mute = lacks.some((command) => /^S?PUBLISH$/.test(command));
  const error = mute
    ? `it cannot send messages of releases, so waiters poll: ${told}`
    : `some operations on locks are refused: ${told}`;
  return { status: 'degraded', error };
}

const UP: Finding = { status: 'up', error: undefined };

/** A hold goes on: a renewal or a release needs no room. */
export const FULL: Finding = {
  status: 'degraded',
  error: 'its memory is full: held locks are kept, but no new lock can be taken',
};
