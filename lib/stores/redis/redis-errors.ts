import { LockKindMismatchError, LockUnavailableError } from '../../lock.errors.js';

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

/** The master has carried the command out, but a failover might lose it. */
export class TooFewReplicas extends Error {
  constructor(confirmed: number, replicas: number, timeout: number) {
    super(
      `${String(confirmed)} of ${String(replicas)} replicas have confirmed it within ${String(timeout)} ms`,
    );
    this.name = 'TooFewReplicas';
  }
}

/** Refusals that no second try can turn: the client itself is wrong. */
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

const isReply = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError';

/** Before Redis 7 an error inside a script is wrapped in one of the script: `ERR Error running script …: -OOM …`. */
const WRAPPED = /^ERR Error running script .*@user_script: ?\d+: (?:@user_script: ?\d+: )?-?([A-Z]+) /;

/** What a user may not do inside of a script is an `ERR` before Redis 7.2. */
const FORBIDDEN = /^ERR (?:ACL failure in script|The user executing the script can't)/;

/** The code at the head of an error reply, such as `READONLY`; undefined when the error is none. */
export function replyCode(error: unknown): string | undefined {
  if (!isReply(error)) return undefined;
  if (FORBIDDEN.test(error.message)) return 'NOPERM';
  return (WRAPPED.exec(error.message) ?? /^-?([A-Z]+)/.exec(error.message))?.[1];
}

/** For a key that holds another kind of lock, or something of the application's. */
export const notALock = (name: string, cause?: unknown): LockKindMismatchError =>
  new LockKindMismatchError(name, { expected: 'lock', found: 'value of another type', cause });

/** Says in the port's words what went wrong with a command on `name`. */
export function translate(error: unknown, name: string | undefined): Error {
  const code = replyCode(error);
  if (code === 'WRONGTYPE') return notALock(name ?? '', error);
  return new LockUnavailableError(name, {
    cause: error,
    effect: REFUSED.has(code ?? '') || error instanceof NotConnected ? 'refused' : 'unknown',
    permanent: PERMANENT.has(code ?? ''),
  });
}
