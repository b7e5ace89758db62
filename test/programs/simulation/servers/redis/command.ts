import type { Database } from './database.js';
import type { Messages } from './messages.js';
import type { Reply } from './replies.js';
import type { Protocol } from './resp.js';
import type { Scripts } from './scripts.js';

/** One connection of a client. */
export interface Session {
  readonly id: number;
  protocol: Protocol;
  name: string;
  readonly channels: Set<string>;
  readonly shardChannels: Set<string>;
  /** Nothing is answered after this command. */
  ends: boolean;
  /** Sends what is no answer. */
  push(items: readonly Reply[]): void;
}

/** What commands find. */
export interface Surroundings {
  database: Database;
  readonly messages: Messages;
  readonly scripts: Scripts;
  /** Microseconds of the wall clock. */
  readonly micros: () => number;
  /** ms of the wall clock. */
  now(): number;
  readonly runId: string;
  /** s since the start. */
  readonly uptime: () => number;
  /** The memory is full, and nothing may be evicted. */
  full: boolean;
  /** How many replicas have all that has been written. */
  readonly replicas: () => number;
  /** Carries out a command. A refusal is an answer, too. */
  call(command: readonly string[], session: Session, inScript: boolean): Reply;
}

export interface Command {
  /** The least number of arguments, and the greatest. */
  readonly counts: readonly [number, number];
  /** Scripts may not send it. */
  readonly notInScripts?: true;
  /** It may change data, and `more` while the memory is full is refused. */
  readonly writes?: 'more' | 'less';
  /** @throws Refusal */
  run(server: Surroundings, args: readonly string[], session: Session): Reply;
}

export type Commands = Readonly<Record<string, Command>>;
