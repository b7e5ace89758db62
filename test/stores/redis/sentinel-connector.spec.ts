import { EventEmitter } from 'node:events';
import { beforeEach, expect, it } from '@jest/globals';
import type { Redis, RedisOptions } from 'ioredis';
import { sentinelOptions } from '../../../lib/stores/redis/connection/sentinel-connector.js';
import type { Address } from '../../../lib/stores/redis/connection/sentinel-votes.js';

/** What ioredis does inside is a double here, in which each sentinel answers as told; real ones are in sentinel.spec. */
const FORMER = { host: '10.0.0.1', port: 6379 };
const NEXT = { host: '10.0.0.2', port: 6379 };

type Sentinel = Partial<Address>;
const [one, two, three] = [1, 2, 3].map((port): Sentinel => ({ host: 'sentinel', port }));
const SENTINELS = [one, two, three] as [Sentinel, Sentinel, Sentinel];

/** Where each sentinel says that the master is. */
let answers: Map<Sentinel, Address | null>;
let opened: { sentinel: Sentinel; options: RedisOptions | undefined; client: EventEmitter }[];
let asked: Sentinel[];

type Emit = (type: string, error: Error) => void;

class Base {
  stream: object | undefined;
  disconnected = 0;
  watching = 0;
  connecting = false;
  emit: Emit = () => undefined;
  sentinelIterator = {
    sentinels: SENTINELS,
    at: 0,
    /** The order in which a connection asks. */
    order: [...SENTINELS],
    next() {
      const value = this.order[this.at++];
      return { done: value === undefined, value };
    },
    reset(moveCurrentToFirst: boolean) {
      const { at, order } = this;
      if (moveCurrentToFirst && at > 1) order.unshift(...order.splice(at - 1, 1));
      this.at = 0;
    },
  };

  constructor(readonly options: RedisOptions) {}

  connectToSentinel(sentinel: Sentinel, options?: RedisOptions): EventEmitter {
    const connect = () => Promise.resolve();
    const client = Object.assign(new EventEmitter(), { connect, subscribe: () => Promise.resolve(0) });
    opened.push({ sentinel, options, client });
    return client;
  }

  resolve(sentinel: Sentinel): Promise<Address | null> {
    asked.push(sentinel);
    return Promise.resolve(answers.get(sentinel) ?? null);
  }

  initFailoverDetector(): void {
    this.watching++;
  }

  connect(emit: Emit): Promise<object> {
    this.connecting = true;
    this.emit = emit;
    return Promise.resolve({});
  }

  disconnect(): void {
    this.connecting = false;
    this.disconnected++;
  }
}

const client = { connector: new Base({}) } as unknown as Redis;

function made(options: RedisOptions = {}): Base {
  const { Connector } = sentinelOptions({ sentinels: SENTINELS }, client);
  return new (Connector as unknown as typeof Base)(options);
}

/** Asks a sentinel for the master, and connects to that. */
async function connected(options?: RedisOptions): Promise<Base> {
  const connector = made(options);
  await connector.resolve(one ?? {});
  connector.stream = {};
  return connector;
}

/** A connection to a sentinel that watches for failovers becomes ready. */
const watch = (connector: Base, options: RedisOptions = { lazyConnect: true }) => {
  const client = connector.connectToSentinel(two ?? {}, options);
  client.emit('ready');
};
const settle = () => new Promise(setImmediate);

beforeEach(() => {
  [answers, opened, asked] = [new Map(), [], []];
  for (const sentinel of SENTINELS) answers.set(sentinel, FORMER);
});

it('tells what a sentinel has refused, in place of a closed connection', async () => {
  const connector = made();
  const told: Error[] = [];
  await connector.connect((_, error) => told.push(error));
  const closed = new Error('All sentinels are unreachable. Last error: Connection is closed.');
  connector.emit('error', closed);
  expect(told).toEqual([closed]);
  connector.connectToSentinel(one ?? {}).emit('error', new Error('ECONNREFUSED'));
  connector.emit('error', closed);
  expect(told[1]).toMatchObject({
    message: 'All sentinels are unreachable. Last error: ECONNREFUSED',
    cause: closed,
  });
  const other = new Error('no master');
  connector.emit('error', other);
  expect(told[2]).toBe(other);
});

it('keeps connections to sentinels alive as that to the master', () => {
  made({ keepAlive: 30 }).connectToSentinel(one ?? {}, { db: 1 });
  expect(opened).toMatchObject([{ options: { db: 1, keepAlive: 30 } }]);
});

it('leaves a master that most sentinels do not name any more, and asks one of these first', async () => {
  const connector = await connected();
  answers.set(two ?? {}, NEXT).set(three ?? {}, NEXT);
  asked = [];
  watch(connector);
  await settle();
  expect(asked).toEqual(SENTINELS);
  expect(connector.disconnected).toBe(1);
  expect(connector.sentinelIterator.order).toEqual([two, one, three]);
  expect(connector.sentinelIterator.at).toBe(0);
});

it('stays with a master that most sentinels name, and with one that it has not asked for', async () => {
  const connector = await connected();
  answers.set(three ?? {}, NEXT);
  watch(connector);
  await settle();
  expect(connector.disconnected).toBe(0);
  for (const sentinel of SENTINELS) answers.set(sentinel, NEXT);
  const unconnected = made();
  watch(unconnected);
  await settle();
  expect(unconnected.disconnected).toBe(0);
  const masterless = made();
  answers.set(one ?? {}, null);
  await masterless.resolve(one ?? {});
  watch(masterless);
  await settle();
  expect(masterless.disconnected).toBe(0);
});

it('compares with connections that watch, for a master alone, and once for several of them', async () => {
  const connector = await connected();
  asked = [];
  watch(connector, {});
  watch(connector, { lazyConnect: false });
  await settle();
  expect(asked).toEqual([]);
  for (let n = 0; n < 5; n++) watch(connector);
  await settle();
  // Once for the first, and once more for those that came meanwhile.
  expect(asked).toEqual([...SENTINELS, ...SENTINELS]);
  watch(connector);
  await settle();
  expect(asked).toHaveLength(9);
  const replica = await connected({ role: 'slave' });
  asked = [];
  watch(replica);
  await settle();
  expect(asked).toEqual([]);
});
