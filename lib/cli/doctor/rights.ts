/** One row of the tables of rights in docs/guide/production.md, which a test compares with these. */
export interface Right {
  /** Commands as in ACL rules, patterns of channels, and of keys with a tilde. For the `keyPrefix` `lock:`. */
  readonly of: readonly string[];
  /** What happens without it, in Markdown. */
  readonly without: string;
  /** `error`: some locks cannot be taken, or not be given up. */
  readonly level: 'warning' | 'error';
}

const QUEUED = 'fair and read-write locks and semaphores';

export const RIGHTS: readonly Right[] = [
  { of: ['evalsha'], level: 'warning', without: 'every command carries its whole script (`EVAL`)' },
  {
    of: ['~lock:*'],
    level: 'error',
    without: '`LockUnavailableError` at once. Nothing is taken',
  },
  {
    of: ['time', 'exists', 'set', 'pexpire', 'hset', 'hdel', 'hlen'],
    level: 'error',
    without:
      'no plain lock is taken: `LockUnavailableError` at once, whose `cause` names the command. Several that are all free do not need `hlen`. Without `time` or `set`, no lock of any kind is taken; health: `down`',
  },
  {
    of: ['type', 'get', 'pttl', 'hexists', 'hgetall'],
    level: 'error',
    without:
      '`LockUnavailableError`, whose `cause` names the command, for most locks that are busy and for `inspect`; a free plain lock is taken. Without `pttl`, without `hexists` for plain locks and without `type` for the other kinds, a lease is not renewed, and is lost when it ends; health: `down`',
  },
  {
    of: ['eval'],
    level: 'error',
    without: '`LockUnavailableError` when the server has forgotten the scripts, as after a restart',
  },
  {
    of: ['zadd', 'zrem', 'zrange', 'zscore', 'zrank'],
    level: 'error',
    without: `\`LockUnavailableError\` for waiters of a plain lock, and for ${QUEUED}`,
  },
  {
    of: ['zcard'],
    level: 'error',
    without: '`LockUnavailableError` where several share a lock, or beside Redisson',
  },
  { of: ['pexpireat'], level: 'error', without: `\`LockUnavailableError\` for ${QUEUED}` },
  {
    of: ['zremrangebyscore'],
    level: 'error',
    without: `\`LockUnavailableError\` for ${QUEUED} with a holder that has died`,
  },
  {
    of: ['lock_queue__channel:*'],
    level: 'warning',
    without:
      'a holder without it is told of a forced release later, and is not asked by `requestRelease`, which fails with `LockUnavailableError` for an asker without it; no lock is first come, first served: waiters poll; health: `degraded`',
  },
  {
    of: ['del'],
    level: 'warning',
    without: '`LockUnavailableError` for `forceRelease`; health: `degraded`',
  },
  {
    of: ['mget'],
    level: 'warning',
    without: '`LockUnavailableError` for several plain locks at once; health: `degraded`',
  },
  {
    of: ['pubsub|numsub'],
    level: 'warning',
    without:
      "`LockUnavailableError` for `inspect`, `list` and `requestRelease`; a dead waiter costs a second while a tool such as `redis-cli` follows a pattern; Redisson's waiters are not left a share of a plain lock; health: `degraded`",
  },
  {
    of: ['publish', 'subscribe', 'redisson_lock__channel:lock:*', 'redisson_lock__channel:{lock:*'],
    level: 'warning',
    without:
      'waiters are not woken, and no holder can be asked (`requestRelease`): they poll, or sleep until the lease ends; health: `degraded`, of `subscribe` from the first wait on',
  },
  { of: ['unsubscribe'], level: 'warning', without: 'channels without a waiter stay subscribed' },
  {
    of: ['info', 'ping'],
    level: 'warning',
    without:
      'health knows less: no role, version, eviction policy; [nodes](topologies/redlock.md) never vote; ioredis warns at each connection without `info`, and `list` notices no restart',
  },
  {
    of: ['scan'],
    level: 'warning',
    without: '`list` fails with `LockUnavailableError`; no lock needs it',
  },
];

/** What comes on top on a cluster. */
export const CLUSTER_RIGHTS: readonly Right[] = [
  { of: ['cluster|slots'], level: 'error', without: 'the nodes are not found: no lock is taken' },
  { of: ['cluster|myid'], level: 'error', without: '`LockUnavailableError` at once; health: `down`' },
  {
    of: ['cluster|nodes'],
    level: 'warning',
    without: '`list` may leave out locks whose slots change hands meanwhile',
  },
];

/** Only with servers that have sharded messages. */
export const SHARDED_RIGHTS: readonly Right[] = [
  {
    of: ['spublish', 'ssubscribe', 'sunsubscribe', 'pubsub|shardnumsub', 'lock_sharding'],
    level: 'warning',
    without: 'each message goes to all nodes of the cluster',
  },
];
