import type { Redis } from 'ioredis';
import type { Script } from '../commands/script.js';

/** One server of a deployment. */
export interface Server {
  /** Host and port. */
  readonly node: string;
  /** The connection is lost, or could not be made. */
  readonly isDown: boolean;
  /** Why nothing can be sent now. */
  outage(): Error;
  /** Changes when a command that was under way may have been sent twice. */
  generationOf(): number;
  /** Sends a script to this server, whatever slots it has. */
  run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /**
   * Sends any command but a script, in a bounded time.
   * @param isHeldBack the server may hold the answer back, as of WAIT, and with it the answers to later commands
   */
  send<T>(command: (client: Redis) => Promise<T>, isHeldBack?: boolean): Promise<T>;
}
