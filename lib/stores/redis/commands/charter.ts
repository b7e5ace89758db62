import { RESERVED } from '../../../store/lock-store.js';
import type { Charter } from '../../quorum/member.js';
import type { Redis } from 'ioredis';
import type { Argument } from './command.js';
import type { Deployment, Server } from '../connection/deployment.js';
import { directCommand } from './direct-command.js';
import { UnexpectedReply } from '../connection/redis-errors.js';
import type { Script } from './script.js';

/** One on each node of a quorum, for all prefixes of services. No lock has this key; see LockKeys. */
export const CHARTER_KEY = `${RESERVED}quorum`;

/** A command on the charter of a server. The prefix of the client is left out. */
const command = (client: Redis, name: string) => {
  const options = { ...client.options, keyPrefix: '' };
  return directCommand(client, name, { options, sendCommand: client.sendCommand.bind(client) });
};

/** Sends the whole script, so that it is one command: an application may switch the database of its client at any time. */
export const onCharter = (server: Server, { source }: Script, args: readonly Argument[]): Promise<unknown> =>
  server.send((client) => command(client, 'eval')(source, 1, CHARTER_KEY, ...args));

/** The servers of a deployment that are nodes of a quorum. A server that does not tell counts as none. */
export async function charteredNodes(deployment: Deployment): Promise<readonly string[]> {
  const servers = await deployment.nodes().catch(() => []);
  const found = servers.map(async (server) => {
    const ask = (client: Redis) => command(client, 'hexists')(CHARTER_KEY, 'id');
    return (await server.send(ask).catch(() => 0)) === 1 ? [server.node] : [];
  });
  return (await Promise.all(found)).flat();
}

/** What charter.lua returns. */
export function charterReply(reply: unknown): { time: number; charter: Charter | undefined } {
  if (!Array.isArray(reply) || reply.length % 2 !== 1) throw new UnexpectedReply(reply);
  const [time, ...flat] = reply.map(String);
  const fields = new Map<string, string>();
  for (let n = 0; n < flat.length; n += 2) fields.set(flat[n] ?? '', flat[n + 1] ?? '');
  const number = (text: string | undefined, least: number): number => {
    const value = Number(text);
    if (!(value >= least)) throw new UnexpectedReply(reply);
    return value;
  };
  const id = fields.get('id');
  const names = [...fields.keys()].flatMap((field) => (field.startsWith('nodes ') ? [field.slice(6)] : []));
  const charter =
    id === undefined
      ? undefined
      : {
          id,
          names,
          size: number(fields.get('size'), 1),
          longest: number(fields.get('longest'), 1),
          allowed: number(fields.get('allowed') ?? '0', 0),
          run: fields.get('run'),
          quarantined: fields.get('quarantined'),
        };
  return { time: number(time, 1), charter };
}
