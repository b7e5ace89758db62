import type { Redis } from 'ioredis';
import { isReply } from './reply-texts.js';

type Answered = (isRefused: boolean) => void;
/** @returns to be called with the answer of the server */
type Listener = (database: number) => Answered | undefined;
type Send = Redis['sendCommand'];
type Sent = Parameters<Send>[0];

/** A transaction of the application. Its commands are carried out together with EXEC, or not at all. */
interface Transaction {
  /** How many commands have been put into it. */
  size: number;
  /** By their position in it. */
  readonly switches: Map<number, Answered>;
}

interface Watch {
  readonly listeners: Set<Listener>;
  stop(): void;
}

/**
 * Of all copies of this package in the process. With one watch of each copy, the one that is put on first would not find its
 * function in place when it stops, and would leave it on the client.
 */
const WATCHES = Symbol.for('nestjs-distributed-lock.database-switches');
const shared = globalThis as { [WATCHES]?: WeakMap<Redis, Watch> | undefined };
const watches = (shared[WATCHES] ??= new WeakMap<Redis, Watch>());

/** The command that is being sent. If it is rejected meanwhile, it has not left: there is no connection, for example. */
let leaving: Sent | undefined;

/**
 * Watches to which database the application switches its own client, just before the command leaves. ioredis reports only a
 * `select` in lower case: `call('SELECT', 1)` and `RESET` would move the locks unnoticed. Every command goes through
 * `sendCommand`. So while a service uses the client, each command is looked at there and passed on. Of one that switches, the
 * answer is noticed too: after a refusal, or with a transaction that is not carried out, the connection stays where it was.
 * @returns a function that stops it
 */
export function onDatabaseSwitch(client: Redis, listener: Listener): () => void {
  const watch = watches.get(client) ?? watchOver(client);
  watch.listeners.add(listener);
  return () => {
    if (watch.listeners.delete(listener) && watch.listeners.size === 0) watch.stop();
  };
}

/** One watch for all services of a process that share the client. */
function watchOver(client: Redis): Watch {
  const listeners = new Set<Listener>();
  const own = Object.getOwnPropertyDescriptor(client, 'sendCommand');
  const send = client.sendCommand.bind(client);
  let transaction: Transaction | undefined;
  const watched: Send = (command, ...rest) => {
    const name = nameOf(command);
    if (name === undefined) {
      if (transaction !== undefined) transaction.size++;
      return send(command, ...rest);
    }
    if (name === 'multi') {
      transaction = { size: 0, switches: new Map() };
    } else if (name === 'exec' || name === 'discard') {
      if (transaction !== undefined) awaitEnd(command, transaction);
      transaction = undefined;
    } else {
      const place = transaction && { of: transaction, position: transaction.size++ };
      const database = databaseAfter(name, command);
      const answered = [...listeners].map((listener) => listener(database));
      awaitAnswer(command, place, (isRefused) => {
        for (const each of answered) each?.(isRefused);
      });
    }
    const before = leaving;
    leaving = command;
    try {
      return send(command, ...rest);
    } finally {
      leaving = before;
    }
  };
  client.sendCommand = watched;
  const stop = () => {
    watches.delete(client);
    // A function that the application has put in front of it since then stays.
    if (client.sendCommand !== watched) return;
    Reflect.deleteProperty(client, 'sendCommand');
    if (own !== undefined) Object.defineProperty(client, 'sendCommand', own);
  };
  const watch = { listeners, stop };
  watches.set(client, watch);
  return watch;
}

/** A switch that the server has put into a transaction has its answer at the end of that. */
function awaitAnswer(
  command: Sent,
  place: { readonly of: Transaction; readonly position: number } | undefined,
  answered: Answered,
): void {
  onReply(command, (reply) => {
    if (place !== undefined && String(reply) === 'QUEUED') place.of.switches.set(place.position, answered);
    else answered(reply instanceof Error);
  });
}

/** A transaction that was discarded, by the server too, has refused all of its switches. */
function awaitEnd(command: Sent, { switches }: Transaction): void {
  onReply(command, (replies) => {
    for (const [position, answered] of switches) {
      answered(!Array.isArray(replies) || replies[position] instanceof Error);
    }
  });
}

/** Calls back with the answer of the server, or that there will be none, before any other code learns of it. */
function onReply(command: Sent, callback: (reply: unknown) => void): void {
  const resolve = command.resolve.bind(command);
  const reject = command.reject.bind(command);
  command.resolve = (reply) => {
    callback(reply);
    resolve(reply);
  };
  command.reject = (error) => {
    if (isReply(error) || leaving === command) callback(error);
    reject(error);
  };
}

const LOOKED_AT = ['select', 'reset', 'multi', 'exec', 'discard'] as const;

/** In lower case; undefined for a command that neither switches nor begins or ends a transaction. */
function nameOf({ name }: Sent): (typeof LOOKED_AT)[number] | undefined {
  // The length is looked at first, because every command of the application comes this way.
  if (name.length < 4 || name.length > 7) return undefined;
  const lower = name.toLowerCase();
  return LOOKED_AT.find((known) => known === lower);
}

/** NaN if only the server can say. */
const databaseAfter = (name: 'select' | 'reset', { args }: Sent): number =>
  name === 'select' ? Number(args[0]) : 0;
