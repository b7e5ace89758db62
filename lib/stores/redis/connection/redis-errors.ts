import { LockKindMismatchError, LockUnavailableError } from '../../../api/errors.js';
import { describe } from '../../../api/describe.js';
import { worthAnotherTry } from '../../../store/another-try.js';
import { CommandRefused } from './command-refused.js';
import { FORBIDDEN, isReply, UNKNOWN, unwrapped } from './reply-texts.js';

/** The command got no answer within its time. It may still be carried out. */
export class CommandTimeout extends Error {
  constructor(timeout: number) {
    super(`Redis did not answer within ${String(Math.round(timeout))} ms`);
    this.name = 'CommandTimeout';
  }
}

/** The command was not sent, because there was no connection to send it over. */
export class NotConnected extends Error {
  constructor(status: string, cause: unknown) {
    super(`not connected to Redis (${status})`, cause === undefined ? undefined : { cause });
    this.name = 'NotConnected';
  }
}

/**
 * The first command over a connection that was idle has no answer. A firewall or the like has dropped the connection, or the
 * server stands still. Another connection follows.
 */
export class DroppedWhileIdle extends Error {
  constructor(silence: number) {
    const time = String(Math.round(silence));
    super(
      `nothing came back over an idle connection within ${time} ms: it was dropped, or the server stands still`,
    );
    this.name = 'DroppedWhileIdle';
  }
}

/** The acquisition was given up before it could be sent, or sent again. It has certainly taken nothing. */
export class TakenBack extends Error {
  constructor() {
    super('the acquisition was given up before Redis could carry it out');
    this.name = 'TakenBack';
  }
}

/** The server does not let this client in: a wrong password or user, or none although one is needed. */
export class NotAdmitted extends Error {
  constructor(reply: Error) {
    super(`Redis does not let this client in: ${reply.message}`, { cause: reply });
    this.name = 'NotAdmitted';
  }
}

/** There is a connection, but not to the database with the locks. */
export class WrongDatabase extends Error {
  constructor(database: number, reason: unknown) {
    const text = reason instanceof Error ? reason.message : String(reason);
    super(`the connection is not on database ${String(database)}: ${text}`, { cause: reason });
    this.name = 'WrongDatabase';
  }
}

/** No script of this library and no server answers so: the application may have an open transaction, or there is a proxy. */
export class UnexpectedReply extends Error {
  constructor(readonly reply: unknown) {
    super(`Redis answered with ${describe(reply)}, which is no reply to that command`);
    this.name = 'UnexpectedReply';
  }
}

/**
 * The server is a node of a cluster, and the connection is one to a single server. Other nodes have most names. Even if
 * the node has all of them, it refuses a command with names of several slots, as renewals are.
 */
export class NodeOfCluster extends Error {
  constructor(reply: unknown) {
    super(`${NODE_OF_CLUSTER}: ${reasonOf(reply)}`, { cause: reply });
    this.name = 'NodeOfCluster';
  }
}

export const NODE_OF_CLUSTER =
  'it is a node of a cluster, which needs a connection to all nodes: connection: { cluster: [{ host, port }] }';

/** The user of a client has no right to the charter of a node. */
export class CharterWithheld extends Error {
  constructor(node: string, key: string, reply: unknown) {
    super(
      `${node} never votes: its user has no right to the charter of the quorum (${reasonOf(reply)}). Give the user that key and ` +
        `the commands of the charter's scripts: ACL SETUSER <user> ~${key} +eval +time +hgetall +hset +hdel`,
      { cause: reply },
    );
    this.name = 'CharterWithheld';
  }
}

/** How a node of a cluster refuses names of another node, or commands that the cluster does not serve. */
const OF_CLUSTER = new Set(['MOVED', 'ASK', 'CLUSTERDOWN', 'CROSSSLOT']);

/** For a connection to a single server: the error says so if the server turns out to be a node of a cluster. */
export const ofSingleServer = (error: unknown): unknown =>
  OF_CLUSTER.has(replyCode(error) ?? '') ? new NodeOfCluster(error) : error;

/** The master has carried the command out, but a failover might lose it. */
export class TooFewReplicas extends Error {
  constructor(confirmed: number, replicas: number, timeout: number) {
    super(
      `${String(confirmed)} of ${String(replicas)} replicas have confirmed it within ${String(timeout)} ms`,
    );
    this.name = 'TooFewReplicas';
  }
}

/** Refusals that no second try can change: the client itself is wrong. */
const PERMANENT = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM']);

/** Refusals that come before a script's first write. Any other error may have come after it. */
const REFUSED = new Set([
  'ASK',
  'BUSY',
  'CLUSTERDOWN',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'MOVED',
  'NOAUTH',
  'NOREPLICAS',
  'OOM',
  'READONLY',
  'TRYAGAIN',
  'WRONGPASS',
]);

/** The reply that an error is about, if it is about one. */
const replyOf = (error: unknown): Error | undefined =>
  error instanceof CommandRefused ? error.reply : isReply(error) ? error : undefined;

const isUnknown = (error: unknown): boolean => {
  const reply = replyOf(error);
  return reply !== undefined && UNKNOWN.test(unwrapped(reply));
};

/** The code at the head of an error reply, such as `READONLY`; undefined if the error is no error reply. */
export function replyCode(error: unknown): string | undefined {
  const reply = replyOf(error);
  if (reply === undefined) return undefined;
  const text = unwrapped(reply);
  if (FORBIDDEN.test(text)) return 'NOPERM';
  return /^-?([A-Z]+) /.exec(text)?.[1] ?? /^-?([A-Z]+)/.exec(reply.message)?.[1];
}

/** The server is a replica. It refuses what writes, or everything if it has lost its master. */
export function isOfReplica(error: unknown): boolean {
  const code = replyCode(error);
  return code === 'READONLY' || code === 'MASTERDOWN';
}

/** The ACL forbids the command, or the provider has removed it. */
export const isWithheld = (error: unknown): boolean => replyCode(error) === 'NOPERM' || isUnknown(error);

/** The same for EVALSHA only: EVAL may still be available. */
export const lacksEvalsha = (error: unknown): boolean =>
  isReply(error) && /^(?:NOPERM\b.*|ERR unknown command )['`]evalsha['`]/i.test(error.message);

/** Whether another try cannot help: the client, or what its user may do, has to be changed first. */
export const isPermanent = (error: unknown): boolean =>
  error instanceof NotAdmitted ||
  error instanceof WrongDatabase ||
  error instanceof NodeOfCluster ||
  error instanceof CharterWithheld ||
  isUnknown(error) ||
  PERMANENT.has(replyCode(error) ?? '');

/** For a key that holds another kind of lock, or a value of the application. */
export const notALock = (name: string, cause?: unknown): LockKindMismatchError =>
  new LockKindMismatchError(name, { expected: 'lock', found: 'value that is no lock', cause });

/** Whether the command has certainly changed nothing: it has not left this process, or it was refused as a whole. */
const isUndone = (error: unknown): boolean =>
  error instanceof NotConnected ||
  error instanceof TakenBack ||
  error instanceof NotAdmitted ||
  error instanceof WrongDatabase ||
  error instanceof NodeOfCluster ||
  (isReply(error) && /^(?:NOPERM(?! ACL failure in script)|ERR unknown command)\b/i.test(error.message)) ||
  REFUSED.has(replyCode(error) ?? '');

/** In one line, for people: the fault, and why there is no connection. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const known = error instanceof NotConnected && error.cause instanceof Error;
  return known ? `${error.message}: ${reasonOf(error.cause)}` : error.message;
}

/**
 * Translates the error of a command on `name` into an error of the port.
 * @param effect is to be given if the error may be about another command than the one that changes the lock
 */
export function translate(
  error: unknown,
  name: string | undefined,
  effect: LockUnavailableError['effect'] = isUndone(error) ? 'refused' : 'unknown',
): Error {
  const code = replyCode(error);
  if (code === 'WRONGTYPE') return notALock(name ?? '', error);
  const unavailable = new LockUnavailableError(name, { cause: error, effect, permanent: isPermanent(error) });
  return error instanceof DroppedWhileIdle ? worthAnotherTry(unavailable) : unavailable;
}
