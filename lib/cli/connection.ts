import { isLockConfigError } from '../api/error-guards.js';
import type { LockModuleOptions, RedisConnection } from '../api/options.js';
import { urlOptions } from '../stores/redis/connection/connection-url.js';
import type { Given } from './given.js';
import { usageFailure } from './command-failure.js';
import { type TlsFiles, tlsFilesOf } from './tls.js';

const ADDRESSES = ['url', 'cluster', 'sentinel', 'nodes'] as const;

type Environment = Readonly<Record<string, string | undefined>>;
type ServerOptions = ReturnType<typeof urlOptions>;

/**
 * The Redis of the locks. A password comes with a URL or the environment, never as an option of its own: all users of the
 * machine see the options of a process.
 * @throws Failure for an invalid address; it never repeats the address
 */
export function connectionOf(
  given: Given,
  environment: Environment,
): Pick<LockModuleOptions, 'connection' | 'nodes' | 'keyPrefix'> {
  const named = ADDRESSES.filter((option) => given.flag(option));
  if (named.length > 1) throw usageFailure(`only one of ${options(named)} may be given`);
  const [kind = 'url'] = named;
  const address = given.value(kind) ?? environment.REDIS_URL;
  // A default would give each machine a Redis, and locks, of its own.
  if (address === undefined || address === '')
    throw usageFailure(`no Redis is named: give one of ${options(ADDRESSES)}, or set REDIS_URL`);
  if (given.flag('master') !== (kind === 'sentinel'))
    throw usageFailure('--sentinel and --master belong together');
  const keyPrefix = given.value('prefix');
  const prefix = keyPrefix === undefined ? {} : { keyPrefix };
  const parts = address.split(',').map((part) => part.trim());
  const source = named.length > 0 ? `--${kind}` : 'REDIS_URL';
  if (kind !== 'url' && parts.includes(''))
    throw usageFailure(`${source}: an address is missing before or after a comma`);
  const context = { source, environment, files: tlsFilesOf(given) };
  if (kind === 'nodes') return { ...prefix, nodes: parts.map((part) => serverOf(part, context)) };
  if (kind === 'cluster') return { ...prefix, connection: clusterOf(parts, context) };
  if (kind === 'sentinel')
    return { ...prefix, connection: sentinelOf(parts, given.value('master') ?? '', context) };
  return { ...prefix, connection: serverOf(address, context) };
}

interface Context {
  /** The option or variable of the address. */
  readonly source: string;
  readonly environment: Environment;
  readonly files: TlsFiles;
}

const options = (names: readonly string[]): string => names.map((name) => `--${name}`).join(', ');

function serverOf(address: string, context: Context): RedisConnection {
  const { source, environment } = context;
  const read = address.startsWith('unix:') ? socketOf(source, address) : urlOf(source, address);
  return { ...credentialsOf(environment, read), ...read, ...tlsOf(read, context) };
}

/** With the files of TLS, if there is any. */
function tlsOf({ tls }: ServerOptions, { source, files }: Context): Pick<ServerOptions, 'tls'> {
  if (tls !== undefined) return { tls: { ...tls, ...files } };
  if (Object.keys(files).length === 0) return {};
  throw usageFailure(`${source}: --cacert, --cert and --key are for rediss:// addresses`);
}

/** `unix:///run/redis.sock?db=1`, with user name and password in front of the path as in other URLs. */
function socketOf(source: string, address: string): ServerOptions {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const path = url && decodeURIComponent(url.pathname);
  if (url === undefined || path === undefined || path.length < 2)
    throw usageFailure(`${source}: a socket is written unix:///path/of/redis.sock`);
  // The other parts may be in a URL of a host as well.
  const authority = url.username === '' && url.password === '' ? '' : `${url.username}:${url.password}@`;
  return { ...urlOf(source, `redis://${authority}localhost${url.search}${url.hash}`), path };
}

function urlOf(source: string, address: string): ServerOptions {
  try {
    return urlOptions(source, address);
  } catch (error) {
    throw isLockConfigError(error) ? usageFailure(error.message) : error;
  }
}

/** Of the servers, if their addresses do not contain it. */
function credentialsOf(
  { REDIS_USERNAME: username, REDIS_PASSWORD: password }: Environment,
  read: ServerOptions,
): ServerOptions {
  if (read.password !== undefined || password === undefined) return {};
  return username === undefined ? { password } : { username, password };
}

/** Addresses as `host:port` or URLs. The other parts of a URL apply to all servers. */
function addressesOf(source: string, parts: readonly string[], usualPort: number) {
  let shared: ServerOptions = {};
  const addresses = parts.map((part) => {
    const address = part.includes('://') ? part : `redis://${part}`;
    const { host = '', port, ...rest } = urlOf(source, address);
    shared = { ...rest, ...shared };
    return { host, port: new URL(address).port === '' ? usualPort : (port ?? usualPort) };
  });
  return { addresses, shared };
}

function clusterOf(parts: readonly string[], context: Context): RedisConnection {
  const { source, environment } = context;
  const { addresses, shared } = addressesOf(source, parts, 6_379);
  if ((shared.db ?? 0) !== 0) throw usageFailure(`${source}: a cluster has no other database than 0`);
  const redisOptions = { ...credentialsOf(environment, shared), ...shared, ...tlsOf(shared, context) };
  return { cluster: addresses, options: { redisOptions } };
}

function sentinelOf(parts: readonly string[], name: string, context: Context): RedisConnection {
  const { source, environment } = context;
  const { addresses, shared } = addressesOf(source, parts, 26_379);
  const { REDIS_SENTINEL_USERNAME: username, REDIS_SENTINEL_PASSWORD: password } = environment;
  const { tls } = tlsOf(shared, context);
  return {
    ...credentialsOf(environment, shared),
    ...shared,
    name,
    sentinels: addresses,
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(tls === undefined ? {} : { tls, enableTLSForSentinelMode: true, sentinelTLS: tls }),
  };
}
