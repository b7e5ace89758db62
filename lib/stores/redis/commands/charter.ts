import { RESERVED } from '../../../store/lock-store.js';
import type { Change, Report } from '../../quorum/member.js';
import type { Redis } from 'ioredis';
import type { Argument } from './command.js';
import type { Deployment, Server } from '../connection/deployment.js';
import { directCommand } from './direct-command.js';
import { UnexpectedReply } from '../connection/redis-errors.js';
import { charter as script } from './script.js';

/** One on each node of a quorum, for all prefixes of services. No lock has this key; see LockKeys. */
export const CHARTER_KEY = `${RESERVED}quorum`;

/** A command on the charter of a server. The prefix of the client is left out. */
const command = (client: Redis, name: string) => {
  const options = { ...client.options, keyPrefix: '' };
  return directCommand(client, name, { options, sendCommand: client.sendCommand.bind(client) });
};

/** Sends the whole script, so that it is one command: an application may switch the database of its client at any time. */
export const onCharter = (server: Server, args: readonly Argument[]): Promise<unknown> =>
  server.send((client) => command(client, 'eval')(script.source, 1, CHARTER_KEY, ...args));

/**
 * Which of the named servers of a deployment are nodes of a quorum. A server that does not tell counts as none.
 */
export async function charteredNodes(
  deployment: Deployment,
  names: readonly string[],
): Promise<readonly string[]> {
  const servers = await deployment.nodes().catch(() => []);
  const asked = servers.filter(({ node }) => names.includes(node));
  const found = asked.map(async (server) => {
    const ask = (client: Redis) => command(client, 'hexists')(CHARTER_KEY, 'id');
    return (await server.send(ask).catch(() => 0)) === 1 ? [server.node] : [];
  });
  return (await Promise.all(found)).flat();
}

/** The arguments of charter.lua. */
export function charterArguments(change: Change | undefined): readonly Argument[] {
  if (change === undefined) return ['', 0, 0, ''];
  const { id, size, longest, names = '', allowed, run, quarantined, claim, known = [] } = change;
  const fields = {
    run,
    quarantined,
    allowed: allowed && Math.floor(allowed),
    claim: claim && `${claim.run} ${String(Math.floor(claim.allowed))}`,
  };
  const given = Object.entries(fields).flatMap(([field, value]) =>
    value === undefined ? [] : [field, value],
  );
  return [id, size, Math.ceil(longest), names, ...given, ...known.flatMap((each) => [`seen ${each}`, ''])];
}

/** What charter.lua returns. */
export function charterReply(reply: unknown): Report {
  if (!Array.isArray(reply) || reply.length % 2 !== 1) throw new UnexpectedReply(reply);
  const [date, ...flat] = reply.map(String);
  const number = (text: string | undefined, least: number): number => {
    const value = Number(text);
    if (!(value >= least)) throw new UnexpectedReply(reply);
    return value;
  };
  const time = number(date, 1);
  const fields = new Map<string, string>();
  for (let n = 0; n < flat.length; n += 2) fields.set(flat[n] ?? '', flat[n + 1] ?? '');
  const id = fields.get('id');
  if (id === undefined) return { time, charter: undefined };
  const named = (word: string) =>
    [...fields].flatMap(([field, value]) =>
      field.startsWith(`${word} `) ? [[field.slice(word.length + 1), value] as const] : [],
    );
  const [run, allowed] = fields.get('claim')?.split(' ') ?? [];
  const charter = {
    id,
    size: number(fields.get('size'), 1),
    longest: number(fields.get('longest'), 1),
    allowed: number(fields.get('allowed') ?? '0', 0),
    names: named('nodes').map(([names]) => names),
    run: fields.get('run'),
    quarantined: fields.get('quarantined'),
    claim: run === undefined ? undefined : { run, allowed: number(allowed, 1) },
    known: new Map(named('seen').map(([seen, since]) => [seen, Math.max(0, time - number(since, 1))])),
  };
  return { time, charter };
}
