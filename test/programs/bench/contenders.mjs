// Each as its README says, with a TTL of 10 s; where it polls, once more with a poll of 10 ms.
const POLL = 10;

const contenders = {
  none: { title: 'no lock', module: 'none' },
  'by-hand': { title: 'its two scripts by hand', module: 'by-hand' },
  queued: { title: 'its scripts and one message by hand', module: 'queued', options: { kind: 'lock' } },
  'queued-fair': {
    title: 'the same, fair lock',
    module: 'queued',
    options: { kind: 'fair' },
  },
  least: { title: 'hash, token and message by hand', module: 'least' },
  publish: { title: 'a PUBLISH', module: 'publish' },
  'publish-take': { title: 'a PUBLISH, then SET NX', module: 'publish', options: { again: true } },
  raw: { title: 'SET NX PX + EVALSHA', module: 'raw' },
  ours: { title: 'this package', module: 'ours' },
  fair: { title: 'this package, fair lock', module: 'ours', options: { kind: 'fair' } },
  'no-handoff': { title: 'this package, localHandoff 0', module: 'ours', options: { localHandoff: 0 } },
  redlock: { title: 'redlock', module: 'redlock' },
  'redlock-10ms': {
    title: 'redlock, 10 ms poll',
    module: 'redlock',
    options: { retryCount: -1, retryDelay: POLL, retryJitter: 0 },
  },
  // Polls every 10 ms by default.
  'redis-semaphore': { title: 'redis-semaphore', module: 'redis-semaphore' },
  'redlock-universal': { title: 'redlock-universal', module: 'redlock-universal' },
  'redlock-universal-10ms': {
    title: 'redlock-universal, 10 ms poll',
    module: 'redlock-universal',
    options: { retryAttempts: 10_000, retryDelay: POLL },
  },
  'redlock-universal-lean': {
    title: 'redlock-universal, lean',
    module: 'redlock-universal',
    options: { performance: 'lean' },
  },
  'redlock-universal-lean-10ms': {
    title: 'redlock-universal, lean, 10 ms poll',
    module: 'redlock-universal',
    options: { performance: 'lean', retryAttempts: 10_000, retryDelay: POLL },
  },
  'simple-redis-mutex': { title: 'simple-redis-mutex', module: 'simple-redis-mutex' },
  'simple-redis-mutex-10ms': {
    title: 'simple-redis-mutex, 10 ms poll',
    module: 'simple-redis-mutex',
    options: { pollingInterval: POLL },
  },
  'node-redisson': { title: 'node-redisson', module: 'node-redisson' },
  // The original, each process a JVM of its own; they take long to start, and much to tell apart from what they differ by.
  redisson: { title: 'Redisson', runtime: 'jvm', rounds: 1, options: { kind: 'plain' } },
  'redisson-fair': { title: 'Redisson, fair lock', runtime: 'jvm', rounds: 1, options: { kind: 'fair' } },
  'redisson-spin': { title: 'Redisson, spin lock', runtime: 'jvm', rounds: 1, options: { kind: 'spin' } },
};

export const contenderOf = (id) => ({ id, runtime: 'node', options: {}, ...contenders[id] });

/** Those whose README tells how to wait, in their default form. */
const PEERS = [
  'redlock',
  'redis-semaphore',
  'redlock-universal',
  'redlock-universal-lean',
  'simple-redis-mutex',
  'node-redisson',
];
/** Without contention nobody polls. */
export const uncontended = ['raw', 'by-hand', 'ours', ...PEERS];
export const contended = [
  'ours',
  'fair',
  'no-handoff',
  ...PEERS.flatMap((id) => (`${id}-10ms` in contenders ? [id, `${id}-10ms`] : [id])),
];
export const redissons = ['redisson', 'redisson-fair', 'redisson-spin'];
/** What others have made, in whichever form. */
export const isPeer = (id) =>
  redissons.includes(id) || (contended.includes(id) && contenderOf(id).module !== 'ours');
/** Peers of the budget for waiters, in all their forms. */
export const waitingPeers = contended.filter((id) => /^(redlock|redis-semaphore|simple)/.test(id));
