import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import { ClusterConnection } from '../../../lib/stores/redis/connection/cluster-connection.js';
import { release } from '../../../lib/stores/redis/commands/script.js';
import { slotOf } from '../../../lib/stores/redis/connection/slots.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedCluster, ScriptedNode } from '../../doubles/scripted-cluster.js';

const KEYS = ['lock:a', 'lock:a:fence'];
const silent = () => new Promise(() => undefined);

beforeEach(() => {
  jest.useFakeTimers();
});

function open({ owned = false, status = 'ready' } = {}) {
  const [one, two] = [new ScriptedNode(1), new ScriptedNode(2)];
  const client = new ScriptedCluster([one, two]);
  client.status = status;
  client.on('error', () => undefined);
  const own = (node: ScriptedNode, key = 'lock:a') => {
    client.slots[slotOf(key)] = [node.name];
  };
  own(one);
  own(two, 'lock:b');
  const connection = new ClusterConnection(client.ioredis, 'cluster', 1_000, owned);
  const changes: ConnectionChange[] = [];
  connection.onChange((change) => changes.push(change));
  const run = (acquisition?: { unwanted: boolean }) => connection.run(release, KEYS, [], acquisition);
  return { one, two, client, own, connection, changes, run };
}

/** Lets all come to its end that waits for no time. */
const settled = () => jest.advanceTimersByTimeAsync(0);

/** How it has ended by now; undefined if it has not. */
async function endOf(promise: Promise<unknown>): Promise<unknown> {
  let end: unknown;
  promise.then(
    (value) => (end = { value }),
    (reason: unknown) => (end = { reason }),
  );
  await settled();
  return end;
}

const asksFor = (command: string, { sent }: ScriptedNode) => sent.filter(([name]) => name === command).length;

describe('The nodes of a cluster', () => {
  it('are asked that by the first command, and again where none has answered', async () => {
    const { one, two, connection, run } = open();
    for (const node of [one, two]) node.answer = () => new Error('away');
    expect(await endOf(run())).toMatchObject({
      reason: { name: 'NotConnected', message: /no node answers/ },
    });
    expect(asksFor('evalsha', one)).toBe(0);
    for (const node of [one, two]) node.answer = () => 1;
    expect(await endOf(run())).toEqual({ value: 1 });
    expect(connection.sharded).toBe(true);
  });

  it('say why no try can help where they do not let this client in', async () => {
    const { one, two, connection } = open();
    await connection.nodes();
    one.answer = () => new Error('away');
    two.status = 'connecting';
    two.on('error', () => undefined);
    two.emit('error', errorReply('NOAUTH no'));
    expect(await endOf(connection.learnSharding())).toMatchObject({ reason: { name: 'NotAdmitted' } });
  });

  it('that ends is used no more, whichever way it ends', () => {
    for (const status of ['disconnecting', 'close', 'end']) {
      const { one, connection } = open();
      one.status = status;
      expect(connection.ownerOf(slotOf('lock:a'))).toBeUndefined();
    }
    const { one, connection } = open();
    one.stream.writable = false;
    expect(connection.ownerOf(slotOf('lock:a'))).toBeUndefined();
    one.status = 'connecting';
    expect(connection.ownerOf(slotOf('lock:a'))?.client).toBe(one);
  });

  // ioredis 5 may call a connection ready that has ended.
  it.each(['end', 'ready'] as const)(
    'that has left and comes back is told of as a new one (%s)',
    async (status) => {
      const { one, two, client, own, connection, changes } = open();
      await connection.nodes();
      two.comeTo('ready');
      await settled();
      own(one, 'lock:b');
      two.stream.writable = false;
      two.comeTo(status);
      client.emit('refresh');
      own(two, 'lock:b');
      two.status = 'ready';
      two.stream.writable = true;
      await connection.nodes();
      two.comeTo('ready');
      await settled();
      const told = { node: 'host:2', connected: true, first: true, error: undefined };
      expect(changes).toEqual([told, told]);
    },
  );
});

describe('A cluster that is not connected', () => {
  it.each<[string, (made: ReturnType<typeof open>) => unknown, object]>([
    [
      'has ended',
      ({ client }) => {
        client.status = 'end';
        client.emit('end');
      },
      { name: 'NotConnected' },
    ],
    ['is closed', ({ connection }) => connection.close(), { name: 'NotConnected' }],
    ['is refused', ({ client }) => client.emit('error', errorReply('NOAUTH no')), { name: 'NotAdmitted' }],
  ])('is waited for no longer where it %s', async (_, happen, reason) => {
    const made = open({ status: 'connecting' });
    const asked = made.connection.nodes();
    expect(await endOf(asked)).toBeUndefined();
    await happen(made);
    expect(await endOf(asked)).toMatchObject({ reason });
  });
});

describe('A command on a cluster', () => {
  it('comes back from the node that its slot is on its way to', async () => {
    const { one, two, run } = open();
    const answers = [errorReply('ASK 1 host:2'), 7];
    one.answer = ([command]) => (command === 'evalsha' ? answers.shift() : 1);
    two.answer = ([command]) => (command === 'evalsha' ? errorReply('TRYAGAIN no') : 1);
    expect(await run()).toBe(7);
    expect(asksFor('evalsha', two)).toBe(1);
  });

  it('waits no longer than its time for the client to find out where a key is', async () => {
    const { one, client, run } = open();
    one.answer = ([command]) => (command === 'evalsha' ? errorReply('MOVED 1 host:2') : 1);
    client.learn = silent;
    const running = run();
    expect(await endOf(running)).toBeUndefined();
    await jest.advanceTimersByTimeAsync(999);
    expect([await endOf(running), asksFor('evalsha', one)]).toEqual([undefined, 1]);
    await jest.advanceTimersByTimeAsync(2);
    expect(await endOf(running)).toMatchObject({ reason: { message: 'MOVED 1 host:2' } });
  });
});

describe('The end of the connection to a cluster', () => {
  it('takes no longer than a command, and a late error has no receiver', async () => {
    const { client, connection } = open({ owned: true });
    client.bye = silent;
    client.removeAllListeners('error');
    const closing = connection.close();
    await jest.advanceTimersByTimeAsync(999);
    expect(client.ended).toEqual(['quit']);
    await jest.advanceTimersByTimeAsync(2);
    await closing;
    expect(client.ended).toEqual(['quit', 'disconnect']);
    expect(() => client.emit('error', new Error('late'))).not.toThrow();
  });
});
