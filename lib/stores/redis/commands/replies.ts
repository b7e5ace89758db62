import type {
  AcquireReply,
  HandOverReply,
  HoldState,
  ReleaseReply,
  TransferReply,
} from '../../../store/lock-store.js';
import { rivalsOf, type Inspected } from '../messages/queue-protocol.js';
import { UnexpectedReply } from '../connection/redis-errors.js';

/** One step of SCAN, of one run of a server. */
export interface ScanStep {
  /** Empty if the server does not tell it. */
  readonly run: string;
  readonly next: string;
  readonly keys: readonly string[];
}

/**
 * All replies are read in this file. A reply without the shape that its script promises (the QUEUED of a transaction that
 * the application has opened on its client, a nil, a text) is no answer: it may be read neither as "granted" nor as "busy".
 * It is thrown, and becomes an unknown outcome.
 */

/** A whole number, which comes as text if the client has `stringNumbers`. */
function integer(value: unknown, reply: unknown, least = -Infinity, most = Infinity): number {
  const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
  if (!Number.isSafeInteger(number)) throw new UnexpectedReply(reply);
  if ((number as number) < least || (number as number) > most) throw new UnexpectedReply(reply);
  return number as number;
}

/** ms. A hold of another client, such as Redisson, may be longer than the greatest safe integer. */
function time(value: unknown, reply: unknown, least: number): number {
  const ms = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
  if (!Number.isInteger(ms) || (ms as number) < least) throw new UnexpectedReply(reply);
  return ms as number;
}

/** The capacity of a read-write lock is the greatest safe integer, which the client's parser rounds up. */
function capacityOf(value: unknown, reply: unknown): number {
  return value === Number.MAX_SAFE_INTEGER + 1 ? Number.MAX_SAFE_INTEGER : integer(value, reply, 1);
}

function text(value: unknown, reply: unknown): string {
  if (typeof value !== 'string') throw new UnexpectedReply(reply);
  return value;
}

const textOrNull = (value: unknown, reply: unknown): string | null =>
  value === null ? null : text(value, reply);

/** @param lengths the numbers of elements that the list may have; without them, any number */
function list(value: unknown, reply: unknown, ...lengths: readonly number[]): readonly unknown[] {
  if (!Array.isArray(value)) throw new UnexpectedReply(reply);
  if (lengths.length > 0 && !lengths.includes(value.length)) throw new UnexpectedReply(reply);
  return value;
}

/** One of the numbers that a script answers with. */
export const codeOf = (reply: unknown, least: number, most: number): number =>
  integer(reply, reply, least, most);

/** The count in the answer of PUBSUB NUMSUB for one channel. */
export const countsOf = (reply: unknown, channels: number): number[] => {
  const counts = list(reply, reply, 2 * channels).filter((_, n) => n % 2 === 1);
  return counts.map((count) => integer(count, reply, 0));
};

/** The name was last used as a kind with a queue, which queue-acquire.lua has to look at first. */
export interface Queued {
  /** Its position among the names that were asked for. */
  readonly queued: number;
}

/** In place of a PTTL: what plain.include.lua calls QUEUED. */
const QUEUED = -3;

/** A PTTL as a time to wait: a key without a TTL has no end. */
const waitOf = (ttl: number): number => (ttl < 0 ? Infinity : ttl);

/** @param told is called with the server's clock, if the reply contains it */
export function plainReply(reply: unknown, told: Told): AcquireReply | Queued {
  if (!Array.isArray(reply)) return { granted: true, fencingToken: integer(reply, reply, 1) };
  const [ttl, holder] = list(reply, reply, 1, 2, 6);
  if (reply.length === 1) {
    integer(ttl, reply, QUEUED, QUEUED);
    return { queued: 0 };
  }
  if (reply.length === 6) return entryReply(reply, reply, told);
  return {
    granted: false,
    retryAfter: waitOf(time(ttl, reply, -1)),
    holder: text(holder, reply),
  };
}

type Told = (date: number, node: string) => void;

/** The answer to an owner in the queue of a plain lock: what busy_reply in plain-queue.include.lua returns. */
function entryReply(entry: readonly unknown[], reply: unknown, told: Told): AcquireReply {
  const [look, holder, arrival, date, node, listen] = entry;
  told(integer(date, reply, 1), text(node, reply));
  return {
    granted: false,
    retryAfter: time(look, reply, 0),
    holder: textOrNull(holder, reply) ?? undefined,
    arrival: integer(arrival, reply, 1),
    listen: integer(listen, reply, 0, 1) === 1,
  };
}

/** What release.lua answers if another owner takes an entry. */
export function handOverReply(reply: unknown, told: Told): HandOverReply {
  const [released, ...next] = list(reply, reply, 3, 7);
  const [token, rivals] = next;
  return {
    released: releaseReply(released),
    next:
      next.length === 6
        ? entryReply(next, reply, told)
        : {
            granted: true,
            fencingToken: integer(token, reply, 1),
            rivals: rivalsOf(integer(rivals, reply, 0, 2)),
          },
  };
}

/** Positions among the names are counted from 0. */
export type PlainGroupReply =
  | { readonly granted: true; readonly fencingTokens: readonly number[] }
  | {
      readonly granted: false;
      readonly index: number;
      readonly retryAfter: number;
      readonly holder: string | undefined;
    }
  | { readonly notALock: number }
  | Queued;

export function plainGroupReply(reply: unknown, names: number): PlainGroupReply {
  if (!Array.isArray(reply)) {
    const token = integer(reply, reply, 1);
    return { granted: true, fencingTokens: new Array<number>(names).fill(token) };
  }
  const [first, ttl, holder] = reply as unknown[];
  const code = integer(first, reply, -names);
  if (code > 0) {
    const tokens = list(reply, reply, names).map((token) => integer(token, reply, 1));
    return { granted: true, fencingTokens: tokens };
  }
  const index = -integer(first, reply, -names, -1) - 1;
  const { length } = list(reply, reply, 1, 2, 3);
  if (length === 1) return { notALock: index };
  if (length === 2) {
    integer(ttl, reply, QUEUED, QUEUED);
    return { queued: index };
  }
  return {
    granted: false,
    index,
    retryAfter: waitOf(time(ttl, reply, -1)),
    holder: textOrNull(holder, reply) ?? undefined,
  };
}

/** The present kind of the name, if it is another one. Nothing has been asked for then. */
export interface OtherKind {
  readonly kind: string;
  readonly capacity: number;
}

export interface QueueAnswer {
  readonly reply: AcquireReply;
  /** The server's clock, ms, and the server that it belongs to. */
  readonly date: number;
  readonly node: string;
}

export function queueReply(reply: unknown): QueueAnswer | OtherKind {
  const [outcome, second, third, fourth, fifth, sixth] = list(reply, reply, 3, 4, 5, 6);
  const { length } = list(reply, reply);
  const code = integer(outcome, reply, -1, 1);
  if (length !== [3, 6, 4][code + 1]) throw new UnexpectedReply(reply);
  if (code < 0) return { kind: text(second, reply), capacity: capacityOf(third, reply) };
  const date = integer(second, reply, 1);
  const node = text(third, reply);
  if (code === 1) return { date, node, reply: { granted: true, fencingToken: integer(fourth, reply, 1) } };
  const arrival = integer(fifth, reply, 0);
  return {
    date,
    node,
    reply: {
      granted: false,
      retryAfter: time(fourth, reply, 0),
      arrival: arrival > 0 ? arrival : undefined,
      holder: textOrNull(sixth, reply) ?? undefined,
    },
  };
}

export function releaseReply(reply: unknown): ReleaseReply {
  const code = codeOf(reply, -1, 1);
  return code === 1 ? 'released' : code === 0 ? 'deleted' : 'taken';
}

/** What release-all.lua returns: an answer or an error for each lock. */
export function releaseReplies(reply: unknown, locks: number): readonly (ReleaseReply | Error)[] {
  if (!Array.isArray(reply)) {
    codeOf(reply, 1, 1);
    return new Array<ReleaseReply>(locks).fill('released');
  }
  return list(reply, reply, locks).map((own) => (own instanceof Error ? own : releaseReply(own)));
}

/** What transfer.lua and queue-transfer.lua return. */
export function transferReply(reply: unknown): TransferReply {
  const [outcome, token, told] = list(reply, reply, 3);
  const code = integer(outcome, reply, -1, 1);
  const date = integer(told, reply, 1);
  if (code === 1) return { granted: true, fencingToken: integer(token, reply, 1), date };
  return { granted: false, state: code === 0 ? 'deleted' : 'taken', date };
}

/** What remember.lua returns. */
export function heldReply(reply: unknown): HoldState {
  const state = releaseReply(reply);
  return state === 'released' ? 'held' : state;
}

/** What scan.lua returns. */
export function scanReply(reply: unknown): ScanStep {
  const [run, next, keys] = list(reply, reply, 3);
  return {
    run: text(run, reply),
    next: text(next, reply),
    keys: list(keys, reply).map((key) => text(key, reply)),
  };
}

/** The ms that recall.lua returns; undefined if nothing is noted. */
export const sinceReply = (reply: unknown): number | undefined =>
  reply === null ? undefined : codeOf(reply, 0, Infinity);

/** @param holds the number of holds that were asked for */
export function renewReply(reply: unknown, holds: number): readonly (HoldState | 'no lock')[] {
  return list(reply, reply, holds).map((state) => {
    const code = integer(state, reply, -2, 1);
    if (code === -2) return 'no lock';
    return code === 1 ? 'held' : code === 0 ? 'deleted' : 'taken';
  });
}

export function inspectReply(reply: unknown): Inspected | null {
  if (reply === null) return null;
  const [fence, listeners, holders, queue, withHolders, dead] = list(reply, reply, 6);
  return {
    fence: textOrNull(fence, reply),
    listeners: integer(listeners, reply, 0),
    holders: pairs(holders, reply),
    queue: pairs(queue, reply),
    withHolders: integer(withHolders, reply, 0, 1) === 1,
    dead: list(dead, reply).map((client) => text(client, reply)),
  };
}

/** A client's note for other processes. */
export const clientNoteReply = (reply: unknown): string | undefined => textOrNull(reply, reply) ?? undefined;

/** Texts, each followed by a number. */
function pairs(value: unknown, reply: unknown): [string, number][] {
  const flat = list(value, reply);
  const result: [string, number][] = [];
  for (let n = 0; n < flat.length; n += 2) {
    // A score may have an exponent. Behind a text without a number there is undefined, which becomes NaN.
    const number = flat[n + 1] === '' ? NaN : Number(flat[n + 1]);
    if (Number.isNaN(number)) throw new UnexpectedReply(reply);
    result.push([text(flat[n], reply), number]);
  }
  return result;
}

/** The text of INFO, which is a list of fields on any server. */
export function infoReply(reply: unknown): string {
  const info = text(reply, reply);
  if (!/^\w+:/m.test(info)) throw new UnexpectedReply(reply);
  return info;
}
