import type { Redis } from 'ioredis';
import { isReply } from './reply-texts.js';

/** @returns to be called with the answer of the server */
type Listener = (database: number) => ((isRefused: boolean) => void) | undefined;
type Send = Redis['sendCommand'];
type Sent = Parameters<Send>[0];

interface Watch {
  readonly listeners: Set<Listener>;
  stop(): void;
}

const watches = new WeakMap<Redis, Watch>();

/**
 * Watches to which database the application switches its own client, just before the command leaves. ioredis reports only a
 * `select` in lower case: `call('SELECT', 1)` and `RESET` would move the locks unnoticed. Every command goes through
 * `sendCommand`. So while a service uses the client, each command is looked at there and passed on. Of one that switches, the
 * answer is noticed too: after a refusal the connection stays where it was.
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
  const watched: Send = (command, ...rest) => {
    const database = databaseAfter(command);
    if (database !== undefined) {
      const answered = [...listeners].map((listener) => listener(database));
      const resolve = command.resolve.bind(command);
      const reject = command.reject.bind(command);
      command.resolve = (reply) => {
        for (const each of answered) each?.(false);
        resolve(reply);
      };
      command.reject = (error) => {
        if (isReply(error)) for (const each of answered) each?.(true);
        reject(error);
      };
    }
    return send(command, ...rest);
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

/** NaN if only the server can say; undefined if the command switches nothing. */
function databaseAfter({ name, args }: Sent): number | undefined {
  // The length is looked at first, because every command of the application comes this way.
  if (name.length === 6 && name.toLowerCase() === 'select') return Number(args[0]);
  if (name.length === 5 && name.toLowerCase() === 'reset') return 0;
  return undefined;
}
