import { timeOf } from '../../../api/duration.js';
import { LockConfigError } from '../../../api/errors.js';
import type { ReplicationOptions } from '../../../api/options.js';
import { monotonicTime } from '../../../runtime/runtime.js';
import type { Server } from '../connection/deployment.js';
import { directCommand } from './direct-command.js';
import { TooFewReplicas } from '../connection/redis-errors.js';
import { codeOf } from './replies.js';

interface ReplicationTerms {
  readonly replicas: number;
  /** ms */
  readonly timeout: number;
}

interface Line {
  underway: Promise<unknown>;
  following: Promise<void> | undefined;
  /** When the last answer was, if enough replicas had it then: on the monotonic clock. */
  confirmedAt: number;
}

const newLine = (): Line => ({ underway: Promise.resolve(), following: undefined, confirmedAt: -Infinity });

/**
 * Makes certain that replicas have the writes of a connection. WAIT blocks that connection, so there is one WAIT at
 * a time. Callers that ask meanwhile share the next one, and other commands get through between the two.
 */
export class Replication {
  private readonly lines = new WeakMap<Server, Line>();

  constructor(private readonly terms: ReplicationTerms) {}

  /**
   * Resolves when the replicas have the connection's last write, and with it all earlier writes, of any client.
   * @throws TooFewReplicas, also if no replica is connected
   */
  confirm(connection: Server): Promise<void> {
    const line = this.lines.get(connection) ?? newLine();
    this.lines.set(connection, line);
    line.following ??= line.underway.then(() => {
      line.following = undefined;
      const confirmation = this.wait(connection);
      line.underway = confirmation.then(
        () => (line.confirmedAt = monotonicTime()),
        () => (line.confirmedAt = -Infinity),
      );
      return confirmation;
    });
    return line.following;
  }

  /** Whether enough replicas had the last writes just now. They may have gone since an older answer. */
  hasConfirmed(connection: Server): boolean {
    const { confirmedAt = -Infinity } = this.lines.get(connection) ?? {};
    return monotonicTime() - confirmedAt < this.terms.timeout;
  }

  private async wait(connection: Server): Promise<void> {
    const { replicas, timeout } = this.terms;
    const reply = await connection.send((client) => directCommand(client, 'wait')(replicas, timeout), true);
    const confirmed = codeOf(reply, 0, Infinity);
    if (confirmed < replicas) throw new TooFewReplicas(confirmed, replicas, timeout);
  }
}

/**
 * The options with the default: a quarter of a command's time, so that the commands that queue up behind a WAIT are still
 * answered in time.
 * @throws LockConfigError when the timeout is not shorter than a command's
 */
export function replicationTerms(
  { replicas, timeout: given }: ReplicationOptions,
  commandTimeout: number,
): ReplicationTerms {
  if (given === undefined) return { replicas, timeout: Math.floor(commandTimeout / 4) };
  const timeout = timeOf('replication.timeout', given, { least: 1 });
  if (timeout >= commandTimeout) {
    const rule = `must be shorter than a command's ${String(commandTimeout)} ms (a sixth of leaseTime, 2 s at most)`;
    throw new LockConfigError('replication.timeout', rule, { value: given });
  }
  return { replicas, timeout };
}
