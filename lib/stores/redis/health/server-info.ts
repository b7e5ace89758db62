import type { NodeHealth, Persistence, ReplicaHealth } from '../../../store/store-health.js';
import type { Server } from '../connection/deployment.js';
import { isWithheld } from '../connection/redis-errors.js';
import { infoReply } from '../commands/replies.js';

/** The INFO of a server. Values that it withholds are undefined. */
export interface ServerInfo extends Pick<
  NodeHealth,
  'runId' | 'version' | 'role' | 'replicas' | 'evictionPolicy' | 'persistence' | 'uptime'
> {
  /** Why the server takes no writes at all. */
  readonly refusesWrites: string | undefined;
  /** Its memory is full and it evicts nothing: commands that need room are refused. */
  readonly full: boolean;
  /** It is a node of a cluster, perhaps the only one. */
  readonly inCluster: boolean;
}

/** @throws the error of the connection; a server that refuses INFO counts as one without values */
export async function serverInfo(connection: Server): Promise<ServerInfo> {
  try {
    // Without a section, because Redis 6 takes one at most.
    return parseInfo(infoReply(await connection.send((client) => client.info())));
  } catch (error) {
    if (isWithheld(error)) return parseInfo('');
    throw error;
  }
}

export function parseInfo(text: string): ServerInfo {
  const fields = new Map<string, string>();
  for (const [, field = '', value = ''] of text.matchAll(/^(\w+):(.*?)\r?$/gm)) fields.set(field, value);
  const role = ROLES.get(fields.get('role') as 'master' | 'slave');
  const uptime = numberOf(fields.get('uptime_in_seconds'));
  return {
    runId: fields.get('run_id'),
    version: fields.get('valkey_version') ?? fields.get('redis_version'),
    role,
    replicas: role === 'master' ? replicasOf(fields) : undefined,
    evictionPolicy: fields.get('maxmemory_policy'),
    persistence: persistenceOf(fields),
    uptime: uptime === undefined ? undefined : uptime * 1_000,
    refusesWrites: refusalOf(fields, role),
    full: isFull(fields),
    inCluster: fields.get('cluster_enabled') === '1',
  };
}

type Fields = ReadonlyMap<string, string>;

const numberOf = (text: string | undefined): number | undefined =>
  text === undefined || text === '' || Number.isNaN(Number(text)) ? undefined : Number(text);

/** Any other word is no role here: KeyDB has replicas that take writes, under another name. */
const ROLES = new Map([
  ['master', 'master'],
  ['slave', 'replica'],
] as const);

function refusalOf(fields: Fields, role: ServerInfo['role']): string | undefined {
  if (role === 'replica' && fields.get('slave_read_only') !== '0')
    return 'it is a replica, and takes no locks';
  // The field exists only if min-replicas-to-write asks for some.
  if (fields.get('min_slaves_good_slaves') === '0')
    return 'it misses the replicas without which it takes no writes';
  return undefined;
}

/** `slave0:ip=10.0.0.2,port=6379,state=online,offset=1234,lag=0` */
function replicasOf(fields: Fields): ReplicaHealth[] {
  const written = numberOf(fields.get('master_repl_offset'));
  const replicas: ReplicaHealth[] = [];
  for (const [field, text] of fields) {
    if (!/^slave\d+$/.test(field)) continue;
    const of = new Map(text.split(',').map((pair) => pair.split('=') as [string, string]));
    const lag = numberOf(of.get('lag'));
    const confirmed = numberOf(of.get('offset'));
    replicas.push({
      node: `${of.get('ip') ?? '?'}:${of.get('port') ?? '?'}`,
      online: of.get('state') === 'online',
      lag: lag === undefined ? undefined : lag * 1_000,
      behind: written === undefined || confirmed === undefined ? undefined : Math.max(0, written - confirmed),
    });
  }
  return replicas;
}

function persistenceOf(fields: Fields): Persistence | undefined {
  const appendOnly = fields.get('aof_enabled');
  if (appendOnly === undefined) return undefined;
  const lastSave = numberOf(fields.get('rdb_last_save_time'));
  const outcomes = ['rdb_last_bgsave_status', 'aof_last_bgrewrite_status', 'aof_last_write_status'];
  return {
    appendOnly: appendOnly === '1',
    lastSave: lastSave === undefined ? undefined : lastSave * 1_000,
    failing: outcomes.some((outcome) => fields.get(outcome) === 'err'),
  };
}

/** Calculated as in the server itself: the buffers of replication and of the append-only file do not count. */
function isFull(fields: Fields): boolean {
  const limit = numberOf(fields.get('maxmemory')) ?? 0;
  const used = numberOf(fields.get('used_memory')) ?? 0;
  const uncounted = numberOf(fields.get('mem_not_counted_for_evict')) ?? 0;
  return limit > 0 && fields.get('maxmemory_policy') === 'noeviction' && used - uncounted > limit;
}
