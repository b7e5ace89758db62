import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { listen } from '../../../lib/stores/redis/connection/client-events.js';
import { clientWarnings } from '../../../lib/stores/redis/connection/client-settings.js';
import {
  clusterClient,
  clusterName,
  commandClient,
  nodeName,
  nodeSubscriberClient,
  subscriberClient,
} from '../../../lib/stores/redis/connection/clients.js';
import { listedOptions } from '../../../lib/stores/redis/connection/cluster-nodes.js';

let client: Redis;

beforeEach(() => {
  jest.useFakeTimers();
  // In the middle of what chance may give.
  jest.spyOn(Math, 'random').mockReturnValue(0.5);
  client = commandClient('redis://127.0.0.1:1', 2_000);
});

afterEach(() => {
  client.disconnect();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

it('the pauses between attempts to connect grow, also where each connection is lost as soon as it is ready', () => {
  const pause = (attempt: number) => client.options.retryStrategy?.(attempt);
  const pauses = Array.from({ length: 12 }, () => pause(1));
  expect(pauses).toEqual([50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 500, 500]);
  jest.advanceTimersByTime(1_600);
  expect(pause(1)).toBe(50);
  expect(pause(7)).toBe(350);
});

it('the pauses of the services of a fleet differ, between half and one and a half of them', () => {
  jest.restoreAllMocks();
  const fleet = Array.from({ length: 150 }, () => {
    const own = commandClient('redis://127.0.0.1:1', 2_000);
    const pauses = [1, 10].map((attempt) => Number(own.options.retryStrategy?.(attempt)));
    own.disconnect();
    return pauses;
  });
  for (const [index, pause] of [50, 500].entries()) {
    const found = fleet.map((pauses) => pauses[index] ?? 0);
    expect(Math.min(...found)).toBeGreaterThanOrEqual(pause / 2);
    expect(Math.max(...found)).toBeLessThanOrEqual(1.5 * pause);
    expect(new Set(found).size).toBeGreaterThan(20);
  }
});

describe('Our own client', () => {
  const made: { disconnect: () => void }[] = [];
  const keep = <C extends { disconnect: () => void }>(own: C): C => {
    made.push(own);
    return own;
  };

  afterEach(() => {
    for (const own of made.splice(0)) own.disconnect();
  });

  it('keeps nothing for later, sends nothing twice, and connects when it is told to', () => {
    expect(client.options).toMatchObject({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      lazyConnect: true,
      failoverDetector: true,
      stringNumbers: false,
    });
    expect(client.status).toBe('wait');
  });

  it('gives up a silent connection, and an attempt to connect, after twice the time of a command', () => {
    const silence = (commandTimeout: number) => {
      const { socketTimeout, connectTimeout } = keep(commandClient('redis://a', commandTimeout)).options;
      return [socketTimeout, connectTimeout];
    };
    expect([2_000, 100].map(silence)).toEqual([
      [4_000, 4_000],
      [1_000, 1_000],
    ]);
    expect(keep(commandClient('redis://a?connectTimeout=9000', 2_000)).options.connectTimeout).toBe(9_000);
  });

  it('forgets the timer of a connection that has closed', () => {
    const own = keep(new Redis({ lazyConnect: true }));
    const nodeOfCluster = keep(new Redis({ lazyConnect: true }));
    const nodes = { nodes: [{ host: 'a', port: 1 }], shared: {} };
    keep(clusterClient(nodes, {}, 2_000)).emit('+node', nodeOfCluster);
    for (const closed of [
      client,
      nodeOfCluster,
      keep(subscriberClient(own)),
      keep(nodeSubscriberClient(own)),
    ]) {
      const before = jest.getTimerCount();
      Object.assign(closed, { socketTimeoutTimer: setTimeout(() => undefined, 10_000) });
      closed.emit('close');
      expect(jest.getTimerCount()).toBe(before);
    }
  });

  it('is named by where it connects, without user and password', () => {
    const name = (options: RedisOptions) => nodeName({ options } as unknown as Redis);
    expect(name({ host: 'a', port: 7, username: 'user', password: 'secret' })).toBe('a:7');
    expect(name({})).toBe('localhost:6379');
    expect(nodeName(client)).toBe('127.0.0.1:1');
    expect(name({ path: '/run/redis.sock', host: 'a' })).toBe('/run/redis.sock');
    expect(name({ sentinels: [{ host: 'a' }], name: 'master', host: 'b' })).toBe('sentinel master');
    expect(name({ sentinels: [{ host: 'a' }] })).toBe('sentinel');
    const nodes = [
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
    ];
    expect(clusterName({ nodes, shared: { password: 'secret' } })).toBe('cluster a:1, b:2');
  });
});

describe('A client of the application', () => {
  const GOOD: RedisOptions = {
    commandTimeout: 5_000,
    autoResendUnfulfilledCommands: false,
    retryStrategy: () => 50,
    reconnectOnError: () => true,
    // These count beside sentinels only.
    failoverDetector: true,
    sentinelCommandTimeout: 1_000,
    sentinelReconnectStrategy: () => 100,
  };
  const codes = (options: RedisOptions) =>
    clientWarnings({ options } as unknown as Redis, 'a:1').map(({ code, node }) => `${code} ${node}`);

  it.each<[string[], RedisOptions]>([
    [[], {}],
    [['command-timeout a:1'], { commandTimeout: undefined }],
    [['resend a:1'], { autoResendUnfulfilledCommands: true }],
    [['resend a:1'], { autoResendUnfulfilledCommands: true, maxRetriesPerRequest: 1 }],
    [[], { autoResendUnfulfilledCommands: true, maxRetriesPerRequest: 0 }],
    [['failover-detector a:1'], { sentinels: [{ port: 1 }], failoverDetector: undefined }],
    [['failover-detector a:1'], { sentinels: [{ port: 1 }], failoverDetector: false }],
    [['sentinel-command-timeout a:1'], { sentinels: [{ port: 1 }], sentinelCommandTimeout: undefined }],
    [['sentinel-reconnect a:1'], { sentinels: [{ port: 1 }], sentinelReconnectStrategy: () => 60_000 }],
    [['sentinel-reconnect a:1'], { sentinels: [{ port: 1 }], sentinelReconnectStrategy: () => null }],
    [[], { sentinels: [{ port: 1 }] }],
    [[], { failoverDetector: undefined, sentinelCommandTimeout: undefined }],
    [['retry-strategy a:1'], { retryStrategy: null }],
    [['reconnect-on-error a:1'], { reconnectOnError: null }],
    // A Sentinel client is told of the new master, and nothing moves behind a socket of this machine.
    [[], { reconnectOnError: undefined, sentinels: [{ port: 1 }] }],
    [[], { reconnectOnError: undefined, path: '/run/redis.sock' }],
  ])('is warned of %j with %j', (warnings, options) => {
    expect(codes({ ...GOOD, ...options })).toEqual(warnings);
  });

  it('of a cluster says in its list of nodes what it says of no other node', () => {
    const startupNodes = [
      { host: 'a', keyPrefix: 'app:' },
      'redis://b:1?keyPrefix=other:&stringNumbers=true',
      7_000,
    ];
    expect(listedOptions({ startupNodes } as unknown as Parameters<typeof listedOptions>[0])).toEqual([
      { host: 'a', keyPrefix: 'app:' },
      { keyPrefix: 'other:', stringNumbers: 'true' },
      {},
    ]);
    expect(listedOptions({} as unknown as Parameters<typeof listedOptions>[0])).toEqual([]);
  });

  it('has one listener for all services, and none when the last has left', () => {
    const own = new Redis({ lazyConnect: true });
    const before = own.listenerCount('ready');
    const heard: unknown[] = [];
    const stops = ['a', 'b'].map((name) =>
      listen(own, { ready: (...details) => heard.push([name, ...details]) }),
    );
    expect(own.listenerCount('ready')).toBe(before + 1);
    own.emit('ready', 1);
    stops[0]?.();
    stops[0]?.();
    own.emit('ready', 2);
    expect(heard).toEqual([
      ['a', 1],
      ['b', 1],
      ['b', 2],
    ]);
    expect(own.listenerCount('ready')).toBe(before + 1);
    stops[1]?.();
    expect(own.listenerCount('ready')).toBe(before);
    own.emit('ready', 3);
    const again = listen(own, { ready: () => heard.push('again') });
    own.emit('ready', 4);
    again();
    expect(heard.slice(3)).toEqual(['again']);
    own.disconnect();
  });
});
