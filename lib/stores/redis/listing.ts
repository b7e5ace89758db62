import {
  RESERVED,
  type ListedName,
  type NamesReply,
  type NamesRequest,
  type StoreListing,
} from '../../port/lock-store.js';
import { LockConfigError } from '../../lock.errors.js';
import type { Deployment, Server } from './deployment.js';
import type { ScriptCalls } from './script-calls.js';

/** How many keys the server looks at in one step: a fraction of a millisecond. */
const KEYS_AT_ONCE = 1_000;

/** The server counts in 64 bits, and takes a greater number for an error. */
const MOST_CURSORS = 2n ** 64n;

/** The mark of a queue's key. What follows it keeps the key in the slot of its lock. */
const QUEUE = `${RESERVED}queue`;

/**
 * Names the locks by their keys, one SCAN at a time: no index could be wrong, and no acquisition pays for one. A lock that is
 * there the whole time is named at least once, as SCAN promises.
 */
export class Listing implements StoreListing {
  /** @param prefix of all keys, as the server sees them */
  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
    private readonly prefix: string,
  ) {}

  async names({ prefix, cursor }: NamesRequest): Promise<NamesReply> {
    const [node, at] = cursorOf(cursor);
    const servers = [...(await this.servers())].sort(
      (a, b) => Number(a.node > b.node) - Number(a.node < b.node),
    );
    // A server that has gone meanwhile is passed over: its locks are at another one, which is asked, too, or was.
    const index = servers.findIndex((server) => server.node >= node);
    const server = servers[index];
    if (server === undefined) return { names: [], cursor: undefined };
    const [next, keys] = await this.scan(server, server.node === node ? at : '0', this.prefix + prefix);
    const names = keys.flatMap((key) => this.listed(key));
    if (next !== '0') return { names, cursor: `${next} ${server.node}` };
    const following = servers[index + 1];
    return { names, cursor: following && `0 ${following.node}` };
  }

  private async servers(): Promise<readonly Server[]> {
    try {
      return await this.connection.nodes();
    } catch (error) {
      throw this.calls.translated(error, undefined);
    }
  }

  private async scan(server: Server, cursor: string, prefix: string): Promise<[string, string[]]> {
    const pattern = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`;
    try {
      return await server.send((client) => client.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_AT_ONCE));
    } catch (error) {
      throw this.calls.translated(error, undefined);
    }
  }

  /** The lock of a key; none for the other keys beside a lock, and for those of the store as a whole. */
  private listed(key: string): ListedName[] {
    const mark = key.indexOf(RESERVED);
    if (mark < 0) return key === this.prefix ? [] : [{ name: key.slice(this.prefix.length), isQueue: false }];
    const name = key.slice(this.prefix.length, mark);
    return name !== '' && key.startsWith(QUEUE, mark) ? [{ name, isQueue: true }] : [];
  }
}

function cursorOf(cursor: string | undefined): [node: string, at: string] {
  if (cursor === undefined) return ['', '0'];
  const [, at, node] = /^(\d{1,20}) (.+)$/.exec(cursor) ?? [];
  if (at !== undefined && node !== undefined && BigInt(at) < MOST_CURSORS) return [node, at];
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
