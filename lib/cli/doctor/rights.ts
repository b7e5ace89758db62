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
      'no plain lock: `LockUnavailableError` at once, whose `cause` names the command. Several free locks at once do not need `hlen`. Without `time` or `set`, no lock of any kind; health: `down`',
  },
  {
    of: ['type', 'get', 'pttl', 'hexists', 'hgetall'],
    level: 'error',
    without:
      'free plain locks are taken; most busy locks and `inspect` fail with `LockUnavailableError`, whose `cause` names the command. Without `pttl`, without `hexists` (plain) and without `type` (other kinds), leases are not renewed, and are lost at their end; health: `down`',
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
    without: '`LockUnavailableError` if several owners share a lock, or beside Redisson',
  },
  { of: ['pexpireat'], level: 'error', without: `\`LockUnavailableError\` for ${QUEUED}` },
  {
    of: ['zremrangebyscore'],
    level: 'error',
    without: `\`LockUnavailableError\` for ${QUEUED} with a crashed holder`,
  },
  {
    of: ['lock_queue__channel:*'],
    level: 'warning',
    without:
      'a holder without it learns of a forced release later and cannot be asked by `requestRelease`; an asker without it gets `LockUnavailableError`; waiters poll, so no lock is first come, first served; health: `degraded`',
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
      "`LockUnavailableError` for `inspect`, `list` and `requestRelease`; a crashed waiter costs a second while a tool such as `redis-cli` follows a pattern; a lock that goes to a waiter costs a command more; Redisson's waiters get no share of a plain lock; health: `degraded`",
  },
  {
    of: ['publish', 'subscribe', 'redisson_lock__channel:lock:*', 'redisson_lock__channel:{lock:*'],
    level: 'warning',
    without:
      'waiters are not woken (they poll, or sleep until the lease ends), and no holder can be asked (`requestRelease`); health: `degraded`, for `subscribe` from the first wait on',
  },
  { of: ['unsubscribe'], level: 'warning', without: 'channels without a waiter stay subscribed' },
  {
    of: ['info', 'ping'],
    level: 'warning',
    without:
      'health lacks role, version and eviction policy; [nodes](topologies/redlock.md) never vote; ioredis warns at each connection without `info`, and `list` notices no restart',
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
    without: '`list` may miss locks whose slots are moving',
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
