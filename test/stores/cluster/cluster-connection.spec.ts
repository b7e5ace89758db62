import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import { ClusterConnection } from '../../../lib/stores/redis/connection/cluster-connection.js';
import { PAUSE } from '../../../lib/stores/redis/connection/node-connections.js';
import { release } from '../../../lib/stores/redis/commands/script.js';
import { slotOf } from '../../../lib/stores/redis/connection/slots.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedCluster, ScriptedNode } from '../../doubles/scripted-cluster.js';

describe('The connection to a cluster', () => {
  /** ms that a command has. */
  const TIMEOUT = 150;
  /** The pauses before another try are real. */
  const realTime = performance.now.bind(performance);
  const KEYS = ['lock:a', 'lock:a:fence'];
  let one: ScriptedNode;
  let two: ScriptedNode;
  let client: ScriptedCluster;
  let connection: ClusterConnection;

  const own = (node: ScriptedNode, key = 'lock:a') => {
    client.slots[slotOf(key)] = [node.name];
  };
  const connect = (owned = false, timeout = TIMEOUT) =>
    new ClusterConnection(client.ioredis, 'cluster', timeout, owned);
  const run = (acquisition?: { unwanted: boolean }) => connection.run(release, KEYS, [], acquisition);
  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
  /** How it ends, as soon as it has; undefined if it takes longer than a command may. */
  const soon = async <T>(promise: Promise<T>): Promise<PromiseSettledResult<T> | undefined> => {
    let end: PromiseSettledResult<T> | undefined;
    void Promise.allSettled([promise]).then(([settled]) => (end = settled));
    for (let ms = 0; end === undefined && ms < 2 * TIMEOUT; ms++) {
      await pass(Math.min(ms, 1));
      // The pause before another try is real.
      await sleep(1);
    }
    return end;
  };
  /** The scripts that a node has got, each with its keys. */
  const scriptsOf = ({ sent }: ScriptedNode) =>
    sent
      .filter(([command]) => /^(asking|eval)/.test(String(command)))
      .map(([command, , count, ...rest]) => [command, ...rest.slice(0, Number(count ?? 0))].join(' '));

  beforeEach(() => {
    jest.useFakeTimers();
    one = new ScriptedNode(1);
    two = new ScriptedNode(2);
    client = new ScriptedCluster([one, two]);
    own(one);
    own(two, 'lock:b');
    connection = connect();
  });

  afterEach(async () => {
    await connection.close();
    jest.useRealTimers();
  });

  it('sends a command to the master of its slot, with the prefix of the client', async () => {
    client.options.keyPrefix = 'app:';
    own(two, 'app:lock:a');
    expect(await soon(run())).toMatchObject({ value: 1 });
    expect(scriptsOf(two)).toEqual(['evalsha app:lock:a app:lock:a:fence']);
    expect(scriptsOf(one)).toEqual([]);
  });

  it('follows a slot that has moved, when it has learned where to', async () => {
    one.answer = ([command]) => (command === 'evalsha' ? errorReply('MOVED 1 host:2') : 1);
    client.learn = () => {
      own(two);
    };
    expect(await soon(run())).toMatchObject({ value: 1 });
    expect(client.learned).toEqual(['lock:a']);
    expect([scriptsOf(one).length, scriptsOf(two).length]).toEqual([1, 1]);
    expect(connection.nodeOf('lock:a')?.node).toBe('host:2');
  });

  it('asks the node that a slot is on its way to, and does not know for a while which one has a key', async () => {
    one.answer = ([command]) => (command === 'evalsha' ? errorReply('ASK 1 host:2') : 1);
    expect(connection.nodeOf('lock:a')?.node).toBe('host:1');
    expect(await soon(run())).toMatchObject({ value: 1 });
    expect(scriptsOf(two)).toEqual(['asking', 'evalsha lock:a lock:a:fence']);
    expect(connection.nodeOf('lock:a')).toBeUndefined();
    expect(connection.nodeOf('lock:b')?.node).toBe('host:2');
    await pass(2 * TIMEOUT);
    expect(connection.nodeOf('lock:a')?.node).toBe('host:1');
  });

  it('learns of a node that has no slot yet by asking the client', async () => {
    const three = new ScriptedNode(3);
    one.answer = ([command]) => (command === 'evalsha' ? errorReply('ASK 1 host:3') : 1);
    client.learn = () => client.all.push(three);
    expect(await soon(run())).toMatchObject({ value: 1 });
    expect(client.learned).toEqual(['lock:a']);
    expect(scriptsOf(three)).toContain('asking');
  });

  it('tries again while keys are on their way, and says so when the time is over', async () => {
    const answers = [errorReply('TRYAGAIN no'), errorReply('TRYAGAIN no'), 7];
    one.answer = ([command]) => (command === 'evalsha' ? answers.shift() : 1);
    expect(await soon(run())).toMatchObject({ value: 7 });
    one.answer = ([command]) => (command === 'evalsha' ? errorReply('TRYAGAIN no') : 1);
    one.sent.splice(0);
    const begun = realTime();
    expect(await soon(run())).toMatchObject({ reason: { message: 'TRYAGAIN no' } });
    // At once, and after a pause before each further try.
    expect(scriptsOf(one).length).toBeLessThanOrEqual(2 + (realTime() - begun) / PAUSE);
  });

  it.each(['CLUSTERDOWN no', 'LOADING no', 'MASTERDOWN no', 'READONLY no'])(
    'looks for the nodes after %s, and does not send the command again',
    async (refusal) => {
      one.answer = ([command]) => (command === 'evalsha' ? errorReply(refusal) : 1);
      expect(await soon(run())).toMatchObject({ reason: { message: refusal } });
      expect([scriptsOf(one).length, client.looks]).toEqual([1, 1]);
    },
  );

  it('sends nothing again that may have been carried out, and looks for the nodes', async () => {
    one.answer = ([command]) => (command === 'evalsha' ? new Error('Connection is closed.') : 1);
    expect(await soon(run())).toMatchObject({ reason: { message: 'Connection is closed.' } });
    expect([scriptsOf(one).length, client.looks]).toEqual([1, 1]);
    one.answer = ([command]) => (command === 'evalsha' ? errorReply('OOM no') : 1);
    await pass(100);
    expect(await soon(run())).toMatchObject({ reason: { message: 'OOM no' } });
    expect([scriptsOf(one).length, client.looks]).toEqual([2, 1]);
  });

  it('sends an acquisition that was given up nowhere else', async () => {
    const acquisition = { unwanted: false };
    one.answer = ([command]) => {
      if (command !== 'evalsha') return 1;
      acquisition.unwanted = true;
      return errorReply('MOVED 1 host:2');
    };
    client.learn = () => {
      own(two);
    };
    expect(await soon(run(acquisition))).toMatchObject({ status: 'rejected' });
    expect(scriptsOf(two)).toEqual([]);
  });

  it('does not take an acquisition for granted whose release went to another node', async () => {
    const acquisition = { unwanted: false };
    one.answer = ([command]) => {
      if (command !== 'evalsha') return 1;
      acquisition.unwanted = true;
      own(two);
      return 1;
    };
    expect(await soon(run(acquisition))).toMatchObject({
      reason: { message: 'the slot has moved meanwhile' },
    });
  });

  it('waits for a slot that no node has, for the time of a command', async () => {
    client.slots = [];
    own(two, 'lock:b');
    const running = run();
    await pass(20);
    own(one);
    expect(await soon(running)).toMatchObject({ value: 1 });
    client.slots = [];
    expect(await soon(run())).toMatchObject({
      reason: { name: 'NotConnected', message: expect.stringContaining('no node has the slot') },
    });
    expect(connection.generationOf('lock:a')).toBe(0);
  });

  it.each<[boolean | string, unknown, unknown]>([
    [true, 0, 1],
    [true, 0, new Error('away')],
    [true, 0, errorReply('LOADING no')],
    [false, 0, errorReply("ERR unknown command 'SPUBLISH'")],
    [false, 0, errorReply("NOPERM can't run 'spublish'")],
    [true, 0, errorReply('MOVED 1 host:1')],
    ['NotConnected', new Error('away'), errorReply('CLUSTERDOWN no')],
  ])('has sharded messages (%s) where its nodes answer %s and %s', async (sharded, first, second) => {
    one.answer = () => first;
    two.answer = () => second;
    const learned = await soon(connection.learnSharding());
    if (typeof sharded === 'boolean') {
      expect(learned?.status).toBe('fulfilled');
      expect(connection.sharded).toBe(sharded);
    } else {
      expect(learned).toMatchObject({ reason: { name: sharded } });
      expect(connection.sharded).toBe(false);
    }
  });

  it('connects at the first use, and fails in time where it cannot', async () => {
    client.status = 'wait';
    expect(await soon(run())).toMatchObject({ value: 1 });
    client.status = 'wait';
    client.on('error', () => undefined);
    client.connect = () => {
      client.status = 'connecting';
      client.emit('error', new Error('connect ECONNREFUSED'));
      return Promise.reject(new Error('no'));
    };
    expect(await soon(connection.nodes())).toMatchObject({
      reason: { name: 'NotConnected', cause: { message: 'connect ECONNREFUSED' } },
    });
    client.status = 'end';
    const asked = performance.now();
    expect(await soon(connection.nodes())).toMatchObject({ status: 'rejected' });
    expect(performance.now()).toBe(asked);
  });

  it.each([
    [true, errorReply("NOPERM can't run 'cluster|info'"), 'NotAdmitted'],
    [true, 'cluster_state:ok', 'NotConnected'],
    [false, errorReply("NOPERM can't run 'cluster|info'"), 'NotConnected'],
  ])('says why a client that checks it (%s) is not let in: %s', async (enableReadyCheck, info, name) => {
    client.status = 'connect';
    Object.assign(client.options, { enableReadyCheck });
    client.info = info;
    client.emit('connect');
    await pass(0);
    const asked = performance.now();
    expect(await soon(connection.nodes())).toMatchObject({ reason: { name } });
    // What is known to be refused is not waited for.
    expect(performance.now() - asked).toBe(name === 'NotAdmitted' ? 0 : TIMEOUT);
  });

  it('does not take a node for away that lets this client in, and says no more than that', async () => {
    const changes: ConnectionChange[] = [];
    connection.onChange((change) => changes.push(change));
    await soon(connection.nodes());
    const refusal = errorReply("NOPERM can't run 'cluster|slots'");
    client.emit('node error', refusal, 'host:1');
    expect(changes.filter(({ connected }) => !connected)).toEqual([]);
    one.status = 'connecting';
    client.emit('node error', refusal, 'host:1');
    expect(changes.filter(({ connected }) => !connected)).toMatchObject([{ node: 'host:1' }]);
  });

  it('names each master once, and uses the present one of several clients of a node', async () => {
    client.slots[7] = ['host:1'];
    const names = async () => (await connection.nodes()).map(({ node }) => node).sort();
    expect(await names()).toEqual(['host:1', 'host:2']);
    expect([connection.isMaster('host:1'), connection.isMaster('host:3')]).toEqual([true, false]);
    const former = connection.ownerOf(slotOf('lock:a'));
    one.status = 'end';
    const again = new ScriptedNode(1);
    client.all.push(again);
    const present = connection.ownerOf(slotOf('lock:a'));
    expect(present).not.toBe(former);
    expect(present?.client).toBe(again);
    expect(connection.ownerOf(slotOf('lock:a'))).toBe(present);
    expect(one.listenerCount('close')).toBe(0);
  });

  it('tells of its nodes, but not that one is away which has no slot any more', async () => {
    const changes: ConnectionChange[] = [];
    connection.onChange((change) => changes.push(change));
    await soon(connection.nodes());
    client.emit('node error', errorReply('NOAUTH no'), 'host:9');
    expect(changes).toEqual([]);
    one.status = 'close';
    one.emit('close');
    expect(changes).toMatchObject([{ node: 'host:1', connected: false }]);
    client.slots[slotOf('lock:b')] = ['host:1'];
    two.status = 'end';
    two.emit('close');
    expect(changes).toHaveLength(1);
    client.emit('refresh');
    expect(two.listenerCount('close')).toBe(0);
    client.emit('close');
    client.emit('ready');
    expect(changes.slice(1)).toMatchObject([
      { node: 'cluster', connected: false },
      { node: 'cluster', connected: true },
    ]);
  });

  it('leaves the client of an application alone when it is closed, and ends its own', async () => {
    await soon(connection.nodes());
    await connection.close();
    expect([client.ended, client.listenerCount('ready'), one.listenerCount('close')]).toEqual([[], 0, 0]);
    client.all.push(new ScriptedNode(3));
    client.slots[9] = ['host:3'];
    expect(connection.ownerOf(9)).toBeUndefined();
    const owned = connect(true);
    await owned.close();
    expect(client.ended).toEqual(['quit', 'disconnect']);
  });
});
