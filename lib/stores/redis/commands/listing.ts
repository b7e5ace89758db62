import {
  RESERVED,
  type ListedName,
  type NamesReply,
  type NamesRequest,
  type StoreListing,
} from '../../../store/lock-store.js';
import type { Deployment, Server } from '../connection/deployment.js';
import {
  isSameWalk,
  layoutOf,
  type ListingCursor,
  readCursor,
  UNCHECKED,
  writeCursor,
} from './listing-cursor.js';
import { type ScanStep, scanReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';

/** How many keys the server looks at in one step: a fraction of a millisecond. */
const KEYS_AT_ONCE = 1_000;

/** The mark of a queue's key. What follows it keeps the key in the slot of its lock. */
const QUEUE = `${RESERVED}queue`;

/**
 * Names the locks by their keys, one SCAN at a time: no index could be wrong, and no acquisition pays for one. A lock that is
 * there the whole time is named at least once. SCAN promises that for one run of one server, so a server that has restarted,
 * or was replaced by its replica, is read from its beginning. On a cluster, a slot may go to a node that has been read
 * already. Then all nodes are read a second time. A lock is left out only if its slot changes hands in both rounds.
 */
export class Listing implements StoreListing {
  /** @param prefix of all keys, as the server sees them */
  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
    private readonly prefix: string,
  ) {}

  async names({ prefix, cursor }: NamesRequest): Promise<NamesReply> {
    const given = cursor === undefined ? undefined : readCursor(cursor);
    try {
      return await this.step(this.prefix + prefix, given);
    } catch (error) {
      throw this.calls.translated(error, undefined);
    }
  }

  private async step(prefix: string, given: ListingCursor | undefined): Promise<NamesReply> {
    const servers = await this.servers(given === undefined);
    const layout = given?.layout ?? (await this.layout(servers));
    // A server that has gone meanwhile is passed over: the layout has changed, and its locks are found in the second round.
    const index = servers.findIndex(({ node }) => node >= (given?.node ?? ''));
    const server = servers[index];
    if (server === undefined) return { names: [], cursor: await this.afterLast(layout) };
    const { at, run, next, keys } = await this.scan(server, given, prefix);
    const names = keys.flatMap((key) => this.listed(key));
    const here = { run, layout, node: server.node };
    const following = servers[index + 1];
    const cursor =
      next !== '0'
        ? writeCursor({ ...here, at: next })
        : following === undefined
          ? await this.afterLast(layout)
          : writeCursor(beginAt(following, layout));
    return { names, step: writeCursor({ ...here, at }), cursor };
  }

  /** The servers in the order in which they are read. */
  private async servers(isFresh: boolean): Promise<readonly Server[]> {
    if (isFresh) await this.connection.refresh();
    const servers = await this.connection.nodes();
    return [...servers].sort((a, b) => Number(a.node > b.node) - Number(a.node < b.node));
  }

  private async layout(servers: readonly Server[]): Promise<string> {
    return this.connection.isCluster ? await layoutOf(servers) : UNCHECKED;
  }

  /** The beginning of the second round, if there has to be one. */
  private async afterLast(layout: string): Promise<string | undefined> {
    if (layout === UNCHECKED) return undefined;
    const servers = await this.servers(true);
    const [first] = servers;
    if (first === undefined || isSameWalk(layout, await this.layout(servers))) return undefined;
    return writeCursor(beginAt(first, UNCHECKED));
  }

  private async scan(
    server: Server,
    given: ListingCursor | undefined,
    prefix: string,
  ): Promise<ScanStep & Pick<ListingCursor, 'at'>> {
    const pattern = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`;
    const from = async (at: string) =>
      scanReply(await server.run(scripts.scan, [], [at, pattern, KEYS_AT_ONCE]));
    const { at, run } = given?.node === server.node ? given : beginAt(server, UNCHECKED);
    const step = await from(at);
    if (step.run === run) return { ...step, at };
    return { ...(at === '0' ? step : await from('0')), at: '0' };
  }

  /** The lock of a key; none for the other keys beside a lock, and for those of the store as a whole. */
  private listed(key: string): ListedName[] {
    const mark = key.indexOf(RESERVED);
    if (mark < 0) return key === this.prefix ? [] : [{ name: key.slice(this.prefix.length), isQueue: false }];
    const name = key.slice(this.prefix.length, mark);
    return name !== '' && key.startsWith(QUEUE, mark) ? [{ name, isQueue: true }] : [];
  }
}

const beginAt = ({ node }: Server, layout: string): ListingCursor => ({
  at: '0',
  node,
  run: '-',
  layout,
});
