import { now } from '../../../runtime/clock.js';
import type { AcquisitionGuard, Argument, Receipt } from './command.js';
import type { Deployment } from '../connection/deployment.js';
import { keysOfLock, type LockKeys } from './keys.js';
import { ofSingleServer, translate } from '../connection/redis-errors.js';
import type { Script } from './script.js';
import { ServerClocks } from './server-clock.js';

/** Calls scripts for locks of one deployment: with which keys, channels and last arguments, and what their errors mean. */
export class ScriptCalls {
  readonly clocks = new ServerClocks();

  constructor(
    private readonly connection: Deployment,
    private readonly keyPrefix: string,
  ) {
    connection.onChange(() => {
      this.clocks.forget();
    });
  }

  keys(name: string): LockKeys {
    return keysOfLock(name, this.keyPrefix, this.connection.keyPrefix);
  }

  /** The command and the channel that announce a release. */
  publishing(keys: LockKeys): [command: string, channel: string] {
    return this.connection.sharded ? ['SPUBLISH', keys.shardChannel] : ['PUBLISH', keys.channel];
  }

  /** The last argument of the scripts with a queue. */
  get clusterArgument(): Argument {
    return this.connection.isCluster ? 'cluster' : '';
  }

  /** Learns the server's clock from the date in a reply. */
  readingClock<R>(
    read: (reply: unknown, told: (date: number, node: string) => void) => R,
  ): (reply: unknown) => R {
    const sentAt = now();
    return (reply) =>
      read(reply, (date, node) => {
        this.clocks.of(node).learn(date, sentAt, now());
      });
  }

  async learnSharding(name: string): Promise<void> {
    try {
      await this.connection.learnSharding();
    } catch (error) {
      throw translate(error, name);
    }
  }

  /** Not an async function, which costs more: every release comes this way. */
  run<R>(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
    name: string | undefined,
    read: (reply: unknown) => R,
    acquisition?: AcquisitionGuard,
    receipt?: Receipt,
  ): Promise<R> {
    const failed = (error: unknown): never => {
      throw this.translated(error, name);
    };
    return this.connection.run(script, keys, args, acquisition, receipt).then((reply) => {
      try {
        return read(reply);
      } catch (error) {
        return failed(error);
      }
    }, failed);
  }

  translated(error: unknown, name: string | undefined): Error {
    return translate(this.connection.isCluster ? error : ofSingleServer(error), name);
  }
}
