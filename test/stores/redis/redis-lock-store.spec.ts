import { describe, expect, it } from '@jest/globals';
import type { QueueMessage } from '../../../lib/store/queue-messages.js';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import type { Listener, Subscriptions } from '../../../lib/stores/redis/connection/deployment.js';
import { LockKeys } from '../../../lib/stores/redis/commands/keys.js';
import { NODE_OF_CLUSTER } from '../../../lib/stores/redis/connection/redis-errors.js';
import { RedisLockStore, type RedisLockStoreOptions } from '../../../lib/stores/redis/redis-lock-store.js';
import { Replication } from '../../../lib/stores/redis/commands/replication.js';
import * as scripts from '../../../lib/stores/redis/commands/script.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedDeployment, ScriptedServer } from '../../doubles/scripted-deployment.js';

const STAY = 3_600_000;
const AWAY = new Error('away');
const PLAIN = { kind: 'lock', mode: 'exclusive', capacity: 1 } as const;
const REQUEST = { name: 'a', owner: 'one:1', leaseTime: 3_000 };
const { lock, queued, channel, shardChannel } = new LockKeys('a', 'lock:', '');

function open(
  parts: ConstructorParameters<typeof ScriptedDeployment>[0] = {},
  options: Partial<RedisLockStoreOptions> = {},
) {
  const deployment = new ScriptedDeployment(parts);
  const subscribed: unknown[] = [];
  const steps: string[] = [];
  let listener: Listener = () => undefined;
  const subscriptions: Subscriptions = {
    subscribe: (...asked) => {
      subscribed.push([asked[0], asked[2]]);
      listener = asked[1];
      return Promise.resolve({ active: true, close: () => undefined });
    },
    obstacle: () => Promise.resolve(new Error('gone')),
    close: () => {
      steps.push('closed');
      return Promise.resolve();
    },
  };
  const store = new RedisLockStore({
    connection: deployment,
    subscriptions: () => {
      steps.push('opened');
      return subscriptions;
    },
    keyPrefix: 'lock:',
    isMember: true,
    clientWarnings: [],
    ...options,
  });
  const say = (text: string | undefined) => {
    listener(text);
  };
  return { deployment, store, subscribed, steps, subscriptions, say };
}

const replication = () => new Replication({ replicas: 1, timeout: 100 });

describe('Where a lock is', () => {
  it('is told by its key', () => {
    const server = new ScriptedServer('a:1');
    const keyed = {
      groupOf: (key: string) => (key === lock ? 7 : 0),
      nodeOf: (key: string) => (key === lock ? server : undefined),
    };
    expect(open(keyed).store.locationOf('a')).toBe('7');
    expect(open(keyed).store.nodeOf('a')).toBe('deployment');
    const cluster = open({ ...keyed, isCluster: true }).store;
    expect([cluster.nodeOf('a'), cluster.nodeOf('b')]).toEqual(['a:1', '']);
  });

  it('may be a server that is down, which names the lock and why', () => {
    const server = new ScriptedServer('a:1');
    const { store } = open({ nodeOf: (key) => (key === lock ? server : undefined) });
    expect(store.outageOf('a')).toBeUndefined();
    server.isDown = true;
    expect(store.outageOf('b')).toBeUndefined();
    expect(store.outageOf('a')).toMatchObject({
      key: 'a',
      effect: 'refused',
      cause: { message: 'a:1 is away' },
    });
  });
});

describe('What is asked for while releases are collected', () => {
  it.each(['acquire', 'acquireAll'] as const)('is sent after them: %s', (way) => {
    const { deployment, store } = open({ run: () => 1 });
    store.together(() => {
      void store.release({ ...REQUEST, queue: PLAIN });
      expect(deployment.runs).toEqual([]);
      void store[way]({ ...REQUEST, names: ['b', 'c'] }).catch(() => undefined);
    });
    expect(deployment.runs.map(({ script }) => script)).toEqual([scripts.release, scripts[way]]);
  });
});

describe('A hand-over in the store', () => {
  const next = { owner: 'one:2', leaseTime: 5_000 };

  it('that meets another kind of lock gives up nothing, and asks what is there now', async () => {
    const { deployment, store } = open({
      run: ({ script }) => (script === scripts.release ? errorReply('WRONGTYPE no') : 17),
    });
    expect(await store.queues.handOver?.({ ...REQUEST, queue: PLAIN }, next)).toEqual({
      released: 'taken',
      next: { granted: true, fencingToken: 17 },
    });
    expect(deployment.runs[1]).toMatchObject({
      script: scripts.acquire,
      args: ['one:2', 5_000, 0, 5_000 + STAY, 0, ''],
    });
  });

  it('that fails otherwise says so', async () => {
    const { deployment, store } = open({ run: () => AWAY });
    await expect(store.queues.handOver?.({ ...REQUEST, queue: PLAIN }, next)).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
    });
    expect(deployment.runs).toHaveLength(1);
  });

  it('is none where replicas have to confirm a grant', () => {
    expect(open({}, { replication: replication() }).store.queues.handOver).toBeUndefined();
  });
});

describe('A forced release', () => {
  const force = (
    found: unknown,
    mode?: 'shared' | 'exclusive',
    parts: ConstructorParameters<typeof ScriptedDeployment>[0] = {},
  ) => {
    const { deployment, store } = open({
      ...parts,
      run: ({ script }) => (script === scripts.inspect ? found : 1),
    });
    return { deployment, done: store.forceRelease('a', mode, { by: 'ops', reason: 'stuck' }) };
  };
  const text = ' forced {"by":"ops","reason":"stuck"}';

  it('takes the lock from the owners that were found, and tells them which service took it', async () => {
    const { deployment, done } = force(['17 x:1 read-write', 0, ['sx:1', 250, 'sy:1', 250], [], 1, []]);
    expect(await done).toBe(true);
    expect(deployment.runs[1]).toMatchObject({
      script: scripts.forceRelease,
      keys: queued,
      args: ['PUBLISH', channel, '', STAY, text, 'x:1 y:1', ''],
    });
    const side = force(['17 x:1 read-write', 0, ['sx:1', 250, 'xy:1', 250], [], 1, []], 'exclusive');
    await side.done;
    expect(side.deployment.runs[1]?.args).toEqual(['PUBLISH', channel, 'x', STAY, text, 'y:1', '']);
  });

  it('has nothing to take where there is no owner, which a master has to say', async () => {
    const { deployment, done } = force(null, 'shared');
    expect(await done).toBe(false);
    expect(deployment.runs[1]?.args.slice(2)).toEqual(['s', STAY, text, '', '']);
    const wrong = open({ run: ({ script }) => (script === scripts.inspect ? null : 2) });
    await expect(wrong.store.forceRelease('a')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key: 'a' });
  });
});

describe('What a client tells other clients', () => {
  it.each([
    ['labels', 'label'],
    ['waits', 'waits'],
  ] as const)('is in a key of its own, for a time: its %s', async (notes, role) => {
    const { deployment, store } = open({ run: ({ args }) => (args[0] === '' ? 'text' : null) });
    await store[notes].keep('one', 'text', 1_000.5);
    expect(await store[notes].find('one')).toBe('text');
    expect(deployment.runs.map(({ args }) => args)).toEqual([[1_001, 'text'], ['']]);
    for (const { script, keys } of deployment.runs) {
      expect(script).toBe(scripts.note);
      expect(keys).toEqual([expect.stringMatching(new RegExp(`^lock:.*${role}:one$`))]);
    }
  });

  it('is forgotten with it', async () => {
    const { deployment, store } = open({ run: () => null });
    await store.waits.forget('one');
    expect(deployment.runs).toMatchObject([{ keys: [expect.stringMatching(/waits:one$/)], args: [0] }]);
  });
});

describe('The messages to a client', () => {
  const listening = async (options: Partial<RedisLockStoreOptions> = {}) => {
    const made = open({}, options);
    const heard: QueueMessage[] = [];
    await made.store.queues.subscribe('one', (message) => heard.push(message));
    return { ...made, heard };
  };

  it('come over its own channel, and it looks where some may have been missed', async () => {
    const { subscribed, heard, say, steps } = await listening();
    expect([subscribed, steps]).toEqual([[['lock_queue__channel:one', false]], ['opened']]);
    say('next one:1 250 0');
    say('granted one:1 17 50000 3000');
    say(undefined);
    expect(heard).toMatchObject([
      { type: 'next', owner: 'one:1' },
      { type: 'granted', fencingToken: 17 },
      { type: 'missed' },
    ]);
    expect(heard[2]).not.toHaveProperty('owner');
  });

  it('grant nothing where replicas have to confirm that: its owner asks', async () => {
    const { heard, say } = await listening({ replication: replication() });
    say('granted one:1 17 50000 3000');
    say('next one:1 250 0');
    expect(heard).toEqual([
      { type: 'missed', owner: 'one:1' },
      { type: 'next', owner: 'one:1', within: 250, listen: false },
    ]);
  });
});

describe('The releases of a lock', () => {
  it('are announced on its channel', async () => {
    const single = open();
    let woken = 0;
    await single.store.subscribeToReleases('a', () => woken++);
    await single.store.subscribeToReleases('a', () => undefined);
    expect([single.subscribed, single.steps]).toEqual([
      [
        [channel, false],
        [channel, false],
      ],
      ['opened'],
    ]);
    const sharded = open({ isCluster: true, sharded: true });
    await sharded.store.subscribeToReleases('a', () => woken++);
    sharded.say('');
    expect([sharded.subscribed, woken]).toEqual([[[shardChannel, true]], 1]);
  });

  it('cannot be heard of where that is unknown or refused', async () => {
    const { deployment, store, subscriptions } = open();
    subscriptions.subscribe = () => Promise.reject(AWAY);
    const asked = () => store.subscribeToReleases('a', () => undefined);
    await expect(asked()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key: 'a', cause: AWAY });
    subscriptions.subscribe = () => Promise.reject(new Error('was asked'));
    deployment.learnSharding = () => Promise.reject(AWAY);
    await expect(asked()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key: 'a', cause: AWAY });
  });
});

describe('The health of a store', () => {
  const server = (info: string) =>
    new ScriptedServer('a:1', ([command]) =>
      command === 'info' ? `redis_version:7.2.4\r\n${info}` : ['1700000000', '0'],
    );
  const warning = { code: 'offline-queue', node: 'deployment', message: 'of the client' } as never;

  it('is that of its servers, which are tried, with the warnings about the client', async () => {
    const { deployment, store } = open(
      { servers: [server('')], run: () => [] },
      { clientWarnings: [warning] },
    );
    expect(await store.health()).toMatchObject({
      status: 'up',
      nodes: [{ node: 'a:1', status: 'up', subscriber: undefined }],
      warnings: [warning],
    });
    expect(deployment.runs).toHaveLength(1);
    await store.health('look');
    expect(deployment.runs).toHaveLength(1);
  });

  it('includes whether messages come through, once there are subscriptions', async () => {
    const { store } = open({ servers: [server('')], run: () => [] });
    await store.subscribeToReleases('a', () => undefined);
    expect(await store.health()).toMatchObject({ status: 'degraded', nodes: [{ subscriber: false }] });
  });

  it('warns of a server that is one of a cluster, and of one that deletes keys', async () => {
    const info = 'cluster_enabled:1\r\nmaxmemory_policy:allkeys-lru\r\n';
    const { store } = open({ servers: [server(info)], run: () => [] });
    expect((await store.health()).warnings).toEqual([
      expect.objectContaining({ code: 'eviction-policy' }),
      { code: 'cluster-node', node: 'a:1', message: `a:1: ${NODE_OF_CLUSTER}` },
    ]);
    const cluster = open({ servers: [server('cluster_enabled:1\r\n')], run: () => [], isCluster: true });
    expect(await cluster.store.health()).toMatchObject({ status: 'up', warnings: [] });
  });

  it('is down where its servers cannot even be named', async () => {
    expect(await open().store.health()).toMatchObject({
      status: 'down',
      nodes: [{ node: 'deployment', status: 'down', error: 'no node' }],
      warnings: [],
    });
  });
});

describe('The connections of a store', () => {
  it('tell their changes', () => {
    const { deployment, store } = open();
    const listeners: ((change: ConnectionChange) => void)[] = [];
    Object.assign(deployment, { onChange: (listener: () => void) => listeners.push(listener) });
    const listener = () => undefined;
    store.onConnectionChange(listener);
    expect(listeners).toEqual([listener]);
  });

  it('end with it, those for messages only if there are any', async () => {
    const quiet = open();
    await quiet.store.close();
    expect([quiet.steps, quiet.deployment.closed]).toEqual([[], true]);
    const { deployment, store, steps } = open();
    await store.subscribeToReleases('a', () => undefined);
    await store.close();
    expect([steps, deployment.closed]).toEqual([['opened', 'closed'], true]);
  });
});
