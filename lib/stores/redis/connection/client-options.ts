import type { Cluster, Redis } from 'ioredis';
import { LockConfigError } from '../../../api/errors.js';
import { CONNECTION_NAME_RULE, isConnectionName } from './connection-name.js';

/** The longest delay of Node's timers, ms: a longer one fires at once. It is also the greatest number of a database. */
const MOST = 2_147_483_647;

/** `connectTimeout`, `slotsRefreshInterval`, `retryDelayOnFailover`, `keepAlive`… */
const TIME = /Timeout|Interval|(?<!^no)Delay|Time$|^keepAlive$/;

type Check = (option: string, value: unknown) => void;

const whole =
  (what: string, least: number, most: number): Check =>
  (option, value) => {
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return;
    // ioredis converts some texts and not others. From a text that is no number it makes NaN, and goes on.
    const cure = typeof value === 'string' ? ' and no text: convert it, as by Number(…)' : '';
    const rule = `must be a whole number${what} from ${String(least)} to ${String(most)}${cure}`;
    throw new LockConfigError(option, rule, { value });
  };

const time = whole(' of ms', 0, MOST);
const port = whole('', 1, 65_535);

/** For credentials that change, as of IAM. ioredis would send the source text of the function. */
const noFunction: Check = (option, value) => {
  if (typeof value !== 'function') return;
  const cure = 'pass a client of ioredis, and set its options whenever they change';
  throw new LockConfigError(option, `must be a text, because ioredis calls no function; ${cure}`);
};

/** These values appear in logs, events and health reports, and a URL would show its password there. */
const address =
  (address: RegExp): Check =>
  (option, value) => {
    if (value === null || (typeof value === 'string' && !address.test(value))) return;
    const rule = 'must be a text and no URL; give the URL itself in place of the options';
    throw new LockConfigError(option, rule, { value });
  };

const host = address(/:\/\/|@/);

const connectionName: Check = (option, value) => {
  // An empty name is none.
  if (value === null || value === '' || isConnectionName(value)) return;
  throw new LockConfigError(option, `must be ${CONNECTION_NAME_RULE}`, { value });
};

const CHECKS = new Map<string, Check>([
  ['connectionName', connectionName],
  ['db', whole('', 0, MOST)],
  ['port', port],
  ['host', host],
  ['name', host],
  ['username', noFunction],
  ['password', noFunction],
  ['sentinelUsername', noFunction],
  ['sentinelPassword', noFunction],
  // The socket of a user's own service lies in /run/user@1000.service or a similar directory.
  ['path', address(/:\/\/|^(?!\/[^/]).*@/)],
  ['tls', tls],
  ['sentinelTLS', tls],
  ['monitor', noMonitor],
  ['sentinels', sentinels],
  ['redisOptions', assertClientOptions],
  ['url', noUrl],
  ['uri', noUrl],
  ['socket', noAddress],
  ['hostname', noAddress],
  ['addresses', noAddress],
]);

/** Options for the place of a server, beside host and port, also of other libraries. */
const OTHER_ADDRESSES = ['path', 'sentinels', 'url', 'uri', 'socket', 'hostname', 'addresses'];

/** By shape, because the application's ioredis may be another copy than ours. */
export const isClient = (connection: object): connection is Redis | Cluster =>
  'duplicate' in connection && typeof connection.duplicate === 'function';

/**
 * Checks the options that are passed on to ioredis, those of sentinels, of a cluster and of its nodes included. It refuses
 * what would end the process, never connect or show a password. Other options are left to ioredis.
 * @throws LockConfigError
 */
export function assertClientOptions(option: string, options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new LockConfigError(option, 'must be an object of ioredis options', { value: options });
  }
  if ('cluster' in options) {
    assertCluster(option, options);
    return;
  }
  assertAddress(option, options as Readonly<Record<string, unknown>>);
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    if (value === undefined) continue;
    const check = CHECKS.get(name) ?? (TIME.test(name) ? time : undefined);
    check?.(`${option}.${name}`, value);
  }
}

/** Refuses an address that is given and has no value, such as an environment variable that is not set. */
function assertAddress(option: string, options: Readonly<Record<string, unknown>>): void {
  const isGiven = (name: string) => options[name] != null && options[name] !== '';
  // ioredis looks at no host and port beside these.
  if (isGiven('sentinels')) {
    if (isGiven('name')) return;
    const rule = 'must be the name of the master, as the sentinels call it';
    throw new LockConfigError(`${option}.name`, rule, { value: options.name });
  }
  if (isGiven('path')) return;
  const isMissing = (name: string) => name in options && !isGiven(name);
  const missing =
    ['host', 'port'].find(isMissing) ??
    // An explicit null means none of them.
    (isGiven('host') ? undefined : OTHER_ADDRESSES.find((name) => isMissing(name) && options[name] !== null));
  if (missing === undefined) {
    if (isGiven('name') && !isGiven('host') && options.sentinels !== null) throw nameAlone(option);
    return;
  }
  const cure = 'set it, or leave the option out if that is meant';
  const rule = `has no value, so ioredis would connect to its default, such as localhost:6379; ${cure}`;
  throw new LockConfigError(`${option}.${missing}`, rule, { value: options[missing] });
}

/** The name of a master without the sentinels that know its address. */
function nameAlone(option: string): LockConfigError {
  const cure = 'give sentinels too, or a host';
  return new LockConfigError(
    `${option}.name`,
    `is no address, so ioredis would connect to localhost; ${cure}`,
  );
}

function assertCluster(option: string, connection: { cluster: unknown; options?: unknown }): void {
  nodes(`${option}.cluster`, connection.cluster);
  if (connection.options !== undefined) assertClientOptions(`${option}.options`, connection.options);
}

function tls(option: string, value: unknown): void {
  if (typeof value !== 'object') {
    const rule = 'must be an object of TLS options, such as {}; without TLS it is left out';
    throw new LockConfigError(option, rule, { value });
  }
}

function noMonitor(option: string, value: unknown): void {
  if (value === null || value === false) return;
  throw new LockConfigError(option, 'a client that monitors takes no commands, so none can lock', { value });
}

function noUrl(option: string): void {
  throw new LockConfigError(option, 'is no option of ioredis; give the URL itself, as a text');
}

/** What other clients call the address. ioredis would connect to localhost. */
function noAddress(option: string): void {
  throw new LockConfigError(option, 'is no option of ioredis; give host and port');
}

function sentinels(option: string, value: unknown): void {
  if (value === null) return;
  if (!Array.isArray(value) || value.length === 0) {
    throw new LockConfigError(option, 'must be an array with at least one { host, port }', { value });
  }
  value.forEach((sentinel: unknown, index) => {
    assertClientOptions(`${option}[${String(index)}]`, sentinel);
  });
}

function nodes(option: string, value: unknown): void {
  if (!Array.isArray(value) || value.length === 0) {
    throw new LockConfigError(option, 'must be an array with at least one node');
  }
  value.forEach((node: unknown, index) => {
    const path = `${option}[${String(index)}]`;
    if (typeof node === 'object' && node !== null) assertClientOptions(path, node);
    // A text of digits is a port. Any other text is a URL, which is checked when it is read.
    else if (typeof node === 'number') port(path, node);
    else if (typeof node === 'string' && /^\d+$/.test(node)) port(path, Number(node));
  });
}
