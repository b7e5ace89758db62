import type { RedisOptions } from 'ioredis';
import { LockConfigError } from '../../../api/errors.js';
import { CONNECTION_NAME_RULE, isConnectionName } from './connection-name.js';

/** Makes the error for an option's URL. It repeats only a parameter's name, because the URL may hold a password. */
type Refuse = (rule: string) => LockConfigError;
type Convert = (text: string) => unknown;

/** The longest delay of a timer, and the greatest number that a server takes for a database or a port. */
const MOST = 2_147_483_647;

const whole =
  (least: number): Convert =>
  (text) =>
    /^\d{1,10}$/.test(text) && Number(text) >= least && Number(text) <= MOST ? Number(text) : undefined;
const oneOf =
  (...values: readonly number[]): Convert =>
  (text) =>
    values.find((value) => String(value) === text);
const flag: Convert = (text) =>
  new Map([
    ['true', true],
    ['false', false],
  ]).get(text);
const text: Convert = (value) => (value === '' ? undefined : value);

/** The parameters after the `?`: the option of ioredis, its rule, and its reader. */
const PARAMETERS = new Map<string, readonly [rule: string, convert: Convert]>([
  ['connectTimeout', ['a whole number of ms from 1 on', whole(1)]],
  ['connectionName', [CONNECTION_NAME_RULE, (name) => (isConnectionName(name) ? name : undefined)]],
  ['db', ['a whole number from 0 on', whole(0)]],
  ['family', ['0, 4 or 6', oneOf(0, 4, 6)]],
  ['keepAlive', ['a whole number of ms from 0 on', whole(0)]],
  ['keyPrefix', ['a text', text]],
  ['noDelay', ['true or false', flag]],
  ['password', ['a text', text]],
  ['protocol', ['2 or 3', oneOf(2, 3)]],
  ['username', ['a text', text]],
]);

/** A name that may be repeated: no password looks like this. */
const PLAIN_NAME = /^[a-z][a-z_]{0,30}$/i;

/**
 * Reads a URL into options of ioredis. ioredis neither checks nor converts the parts of a URL (`/foo` becomes database
 * NaN, a timeout becomes a text), and it lets a URL override how long this library waits.
 * @param option the option of the URL
 * @throws LockConfigError
 */
export function urlOptions(option: string, url: string): RedisOptions {
  const refuse: Refuse = (rule) => new LockConfigError(option, rule);
  if (!/^rediss?:\/\//.test(url)) {
    const scheme = /^[a-z][a-z\d+.-]*:(?=\/\/)/i.exec(url)?.[0] ?? 'text without a scheme';
    throw refuse(`a URL must start with redis:// or rediss:// (found: ${scheme})`);
  }
  if (!/:\/\/./.test(url) || !URL.canParse(url)) throw refuse('is not a valid URL');
  const parsed = new URL(url);
  if (parsed.hostname === '')
    throw refuse('has no host, which would mean localhost; write that if it is meant');
  if (parsed.hash !== '') throw refuse('the URL has text after a #; a # in a password is written %23');
  const options: Record<string, unknown> = {
    // An IPv6 address in brackets is a host only in a URL.
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: parsed.port === '' ? 6379 : Number(parsed.port),
    ...credentials(parsed, refuse),
    ...(parsed.protocol === 'rediss:' ? { tls: {} } : {}),
  };
  const database = parsed.pathname.replace(/^\//, '');
  if (database !== '') {
    const db = whole(0)(database);
    if (db === undefined) throw refuse('the path of the URL must be the number of a database');
    options.db = db;
  }
  for (const [name, value] of parsed.searchParams) {
    const parameter = PARAMETERS.get(name);
    const shown = PLAIN_NAME.test(name) ? `${name} in the URL` : 'a parameter of the URL';
    if (parameter === undefined) throw refuse(`${shown} is none of ${[...PARAMETERS.keys()].join(', ')}`);
    const [rule, convert] = parameter;
    const converted = convert(value);
    if (converted === undefined) throw refuse(`${shown} must be ${rule}`);
    if (name in options) throw refuse(`${shown} is given more than once`);
    options[name] = converted;
  }
  return options;
}

function credentials({ username, password }: URL, refuse: Refuse): RedisOptions {
  if (username === '' && password === '') return {};
  try {
    // Without a user name, the password belongs to the server's default user.
    const user = username === '' ? {} : { username: decodeURIComponent(username) };
    return { ...user, password: decodeURIComponent(password) };
  } catch {
    throw refuse('a % in the user name or the password of a URL is written %25');
  }
}
