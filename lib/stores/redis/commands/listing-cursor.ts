import { createHash } from 'node:crypto';
import { LockConfigError } from '../../../api/errors.js';
import type { Server } from '../connection/deployment.js';
import { isWithheld } from '../connection/redis-errors.js';

/** How far a listing has come. */
export interface ListingCursor {
  /** The cursor of SCAN; '0' begins. */
  readonly at: string;
  /** The run of the server that the cursor belongs to; `-` if none has answered yet. */
  readonly run: string;
  /** Which node of a cluster had which slots when the first round began. */
  readonly layout: string;
  /** The name of the server. */
  readonly node: string;
}

/** In place of a layout: one server has none, and the second round of a cluster is the last one. */
export const UNCHECKED = '-';

/** Marks a layout in which keys are on the way from one node to another. */
const MOVING = '!';

/** The server counts in 64 bits, and takes a greater number for an error. */
const MOST_CURSORS = 2n ** 64n;

export const writeCursor = ({ at, run, layout, node }: ListingCursor): string =>
  `${at} ${run} ${layout} ${node}`;

/** @throws LockConfigError for the cursor of another store */
export function readCursor(cursor: string): ListingCursor {
  const [, at, run = '', layout = '', node] = /^(\d{1,20}) (\w*|-) ([\w!-]+) (.+)$/.exec(cursor) ?? [];
  if (at !== undefined && node !== undefined && BigInt(at) < MOST_CURSORS) return { at, run, layout, node };
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}

/** No slot has changed hands, and none was about to. */
export const isSameWalk = (before: string, after: string): boolean =>
  before === after && !after.startsWith(MOVING);

/**
 * What each node says of itself: its id, its role, the epoch of its slots, its slots, and those whose keys are on the way.
 * What others say of it may be late.
 */
export async function layoutOf(servers: readonly Server[]): Promise<string> {
  const lines = await Promise.all(servers.map(ownLine));
  const hash = createHash('sha1').update(lines.join('\n')).digest('base64url');
  return lines.some((line) => /\[\d+-[<>]-/.test(line)) ? MOVING + hash : hash;
}

async function ownLine(server: Server): Promise<string> {
  try {
    const nodes: unknown = await server.send((client) => client.cluster('NODES'));
    const own = String(nodes)
      .split('\n')
      .find((line) => /^\S+ \S+ \S*\bmyself\b/.test(line));
    const [id = '', , flags = '', master = '', , , epoch = '', , ...slots] = (own ?? '').trim().split(' ');
    return [id, flags, master, epoch, ...slots].join(' ');
  } catch (error) {
    // A user who may not ask: only a change of masters is noticed.
    if (isWithheld(error)) return server.node;
    throw error;
  }
}
