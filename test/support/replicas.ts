import { setTimeout as sleep } from 'node:timers/promises';
import { RedisServer } from './redis-server.js';

/** For a master: its replicas get its data at once, instead of five seconds later. */
export const MASTER_ARGS = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];

/** A replica of a master, which has its data and stays in touch. */
export async function startReplica(master: RedisServer, args: string[] = []): Promise<RedisServer> {
  const replicaof = ['--replicaof', '127.0.0.1', String(master.port)];
  const replica = await RedisServer.start({ args: [...MASTER_ARGS, ...replicaof, ...args] });
  await inSync(master, [replica]);
  return replica;
}

/** Resolves when the replicas follow their master command by command: what INFO says of them may be earlier. */
export async function inSync(master: RedisServer, replicas: readonly RedisServer[]): Promise<void> {
  const mark = `in-sync:${String(performance.now())}`;
  await master.client().set(mark, '', 'PX', 60_000);
  for (const replica of replicas) while ((await replica.client().exists(mark)) === 0) await sleep(10);
  await master.client().del(mark);
}

/** The port of the master that a replica follows. */
export async function masterOf(replica: RedisServer): Promise<number | undefined> {
  const [role, , port] = (await replica.client().role()) as [string, string, number];
  return role === 'slave' ? port : undefined;
}

/** `master` or `slave`. */
export async function roleOf(server: RedisServer): Promise<string> {
  const [role] = (await server.client().role()) as [string];
  return role;
}
