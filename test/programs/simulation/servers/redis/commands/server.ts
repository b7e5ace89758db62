import type { Commands, Session, Surroundings } from '../command.js';
import { wholeOf } from '../numbers.js';
import { OK, Pairs, Refusal, type Reply, Status } from '../replies.js';

export const VERSION = '7.0.15';

function hello(session: Session, [version, ...given]: readonly string[]): Reply {
  if (version !== undefined) {
    if (version !== '2' && version !== '3') throw new Refusal('NOPROTO unsupported protocol version');
    if (given.length > 0) throw new Refusal('ERR Syntax error in HELLO option');
    session.protocol = Number(version) as 2 | 3;
  }
  const told: Record<string, Reply> = {
    server: 'redis',
    version: VERSION,
    proto: session.protocol,
    id: session.id,
    mode: 'standalone',
    role: 'master',
    modules: [],
  };
  return new Pairs(Object.entries(told).flat());
}

function client(session: Session, [word = '', ...args]: readonly string[]): Reply {
  switch (word.toUpperCase()) {
    case 'ID':
      return session.id;
    case 'GETNAME':
      return session.name === '' ? null : session.name;
    case 'SETNAME':
      session.name = args[0] ?? '';
      return OK;
    default:
      throw new Refusal(`ERR unknown subcommand '${word}'. Try CLIENT HELP.`);
  }
}

/** Only the one setting that a fault and the comparison need. */
function config(surroundings: Surroundings, [word = '', name = '', value = '']: readonly string[]): Reply {
  if (word.toUpperCase() !== 'SET' || name !== 'maxmemory') throw new Refusal('ERR not modelled');
  // Whatever the limit is, there is more than that.
  surroundings.full = wholeOf(value) > 0;
  return OK;
}

function info({ runId, uptime, replicas }: Surroundings): string {
  const count = replicas();
  return Object.entries({
    redis_version: VERSION,
    run_id: runId,
    uptime_in_seconds: Math.floor(uptime()),
    loading: 0,
    maxmemory: 0,
    maxmemory_policy: 'noeviction',
    aof_enabled: 0,
    role: 'master',
    connected_slaves: count,
    cluster_enabled: 0,
  })
    .map(([field, value]) => `${field}:${String(value)}\r\n`)
    .join('');
}

const isSubscribed = ({ channels, shardChannels }: Session): boolean =>
  channels.size + shardChannels.size > 0;

export const server: Commands = {
  PING: {
    counts: [0, 1],
    run: (_, [text], session) => {
      // Without a mark for what is no answer, subscribers could take it for a message.
      if (session.protocol === 2 && isSubscribed(session)) return ['pong', text ?? ''];
      return text ?? new Status('PONG');
    },
  },
  ECHO: { counts: [1, 1], run: (_, [text = '']) => text },
  HELLO: { counts: [0, Infinity], notInScripts: true, run: (_, args, session) => hello(session, args) },
  CLIENT: { counts: [1, Infinity], notInScripts: true, run: (_, args, session) => client(session, args) },
  INFO: { counts: [0, Infinity], run: (surroundings) => info(surroundings) },
  CONFIG: { counts: [1, Infinity], notInScripts: true, run: config },
  TIME: {
    counts: [0, 0],
    run: ({ micros }) => {
      const now = micros();
      return [String(Math.floor(now / 1e6)), String(now % 1e6)];
    },
  },
  SELECT: {
    counts: [1, 1],
    run: (_, [text = '']) => {
      if (wholeOf(text) !== 0) throw new Refusal('ERR DB index is out of range');
      return OK;
    },
  },
  CLUSTER: {
    counts: [1, Infinity],
    run: () => {
      throw new Refusal('ERR This instance has cluster support disabled');
    },
  },
  QUIT: {
    counts: [0, Infinity],
    notInScripts: true,
    run: (_, __, session) => {
      session.ends = true;
      return OK;
    },
  },
};
