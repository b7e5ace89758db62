import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RedisOptions } from 'ioredis';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { acquire } from '../../../lib/stores/redis/commands/script.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedClient } from '../../doubles/scripted-client.js';

const AWAY = new Error('connect ECONNREFUSED');
const REPLICA = errorReply("READONLY You can't write against a read only replica.");
const SENTINELS = { sentinels: [{ host: 'sentinel' }] };
/** Of a client that connects again after so many ms. */
const RETRIES = { retryStrategy: (attempt: number) => 50 * attempt };

beforeEach(() => {
  jest.useFakeTimers();
});

interface Given {
  status?: string;
  /** Whether the client is this library's own. */
  owned?: boolean;
  options?: RedisOptions;
  answer?: (command: readonly unknown[]) => unknown;
}

function open({ status = 'ready', owned = true, options = {}, answer = () => 17 }: Given = {}) {
  const client = new ScriptedClient(answer, options);
  client.status = status;
  const connection = new ServerConnection(client.redis, 'node', 1_000, owned);
  const changes: ConnectionChange[] = [];
  connection.onChange((change) => changes.push(change));
  const run = (key = 'a', acquisition?: { unwanted: boolean }) =>
    connection.run(acquire, [key], [], acquisition);
  return { client, connection, changes, run };
}

/** Lets all come to its end that waits for no time. */
const settled = () => jest.advanceTimersByTimeAsync(0);

const silent = () => new Promise(() => undefined);

describe('The changes of a connection', () => {
  it('begin with the first connection, also where it was made before', async () => {
    const late = open({ status: 'wait' });
    await settled();
    expect(late.changes).toEqual([]);
    late.client.comeTo('ready');
    const early = open();
    await settled();
    for (const { changes } of [late, early])
      expect(changes).toEqual([{ node: 'node', connected: true, first: true, error: undefined }]);
  });

  it('are told when it is lost, and it is down until the client is ready again', async () => {
    const { client, changes, connection } = open();
    await settled();
    client.comeTo('close');
    expect(changes.slice(1)).toMatchObject([{ connected: false, first: false }]);
    expect(connection.isDown).toBe(true);
    client.status = 'ready';
    expect(connection.isDown).toBe(false);
    expect(open({ status: 'connecting' }).connection.isDown).toBe(false);
  });

  it('are told while a client asks its sentinels in turn, whose connections never close', () => {
    const { client, changes } = open({ status: 'connecting', options: SENTINELS });
    client.emit('error', AWAY);
    expect(changes).toMatchObject([{ connected: false, error: AWAY }]);
    const other = open({ status: 'connecting' });
    other.client.emit('error', AWAY);
    const connected = open({ status: 'connect', options: SENTINELS });
    connected.client.emit('error', AWAY);
    expect([...other.changes, ...connected.changes]).toEqual([]);
  });
});

describe('Another connection', () => {
  const watched = (status: string) => {
    const made = open({ status });
    let times = 0;
    made.connection.onReconnected(() => times++);
    return { ...made, times: () => times };
  };

  it('is told to those that asked for it, and the first is none', () => {
    const { client, times } = watched('connect');
    client.comeTo('ready');
    expect(times()).toBe(0);
    client.comeTo('close');
    client.comeTo('ready');
    client.comeTo('ready');
    expect(times()).toBe(2);
    const early = watched('ready');
    early.client.comeTo('ready');
    expect(early.times()).toBe(1);
  });

  it('may have sent commands twice, as a switch of the database may', async () => {
    const { client, connection } = open();
    const first = connection.generationOf();
    open();
    client.comeTo('close');
    const second = connection.generationOf();
    expect(second).toBeGreaterThan(first);

    const shared = open({ owned: false });
    const before = shared.connection.generationOf();
    shared.client.condition = { select: 2 };
    shared.client.emit('select', 2);
    expect(shared.connection.generationOf()).toBeGreaterThan(before);
    await expect(shared.run()).rejects.toMatchObject({ name: 'WrongDatabase' });
  });

  it('is made by a client that has ended by itself, for which its commands wait', async () => {
    const { client, changes, run } = open({ options: RETRIES });
    const running = [run()];
    client.comeTo('end');
    running.push(run());
    expect(changes).toMatchObject([{ connected: false }]);
    await jest.advanceTimersByTimeAsync(49);
    expect(client.steps).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(client.steps).toEqual(['connect']);
    client.comeTo('ready');
    expect(await Promise.all(running)).toEqual([17, 17]);
  });
});

describe('A script over a connection', () => {
  it('waits for a connection for its time', async () => {
    for (const [left, time] of [
      [Infinity, 1_000],
      [300, 300],
    ]) {
      const { client, connection } = open({ status: 'connecting' });
      const until = performance.now() + (left ?? 0);
      const sending = { group: 0, until, asking: false, isAlone: false };
      let reason: unknown;
      connection
        .run(acquire, ['a'], [], undefined, undefined, sending)
        .catch((error: unknown) => (reason = error));
      await jest.advanceTimersByTimeAsync((time ?? 0) - 1);
      expect(reason).toBeUndefined();
      await jest.advanceTimersByTimeAsync(1);
      expect(reason).toMatchObject({ name: 'NotConnected' });
      expect(client.sent).toEqual([]);
    }
  });

  it.each<[string, (made: ReturnType<typeof open>) => void]>([
    [
      'has ended',
      ({ client }) => {
        client.comeTo('end');
      },
    ],
    [
      'is left alone',
      ({ connection }) => {
        connection.detach();
      },
    ],
    ['is refused', ({ client }) => client.emit('error', errorReply('NOAUTH no'))],
  ])('waits no longer where the client %s', async (_, happen) => {
    const made = open({ status: 'connecting' });
    const running = Promise.allSettled([made.run()]);
    happen(made);
    await settled();
    expect(await running).toMatchObject([{ status: 'rejected' }]);
  });
});

describe('What a client says of its errors', () => {
  it('is the cause of what cannot be sent', () => {
    const { client, connection } = open({ status: 'connecting' });
    expect(connection.outage()).toMatchObject({ name: 'NotConnected', message: /connecting/ });
    client.emit('error', AWAY);
    expect(connection.outage().cause).toBe(AWAY);
    client.comeTo('ready');
    expect(connection.outage().cause).toBe(AWAY);
    const connected = open({ status: 'connect' });
    connected.client.emit('error', AWAY);
    expect(connected.connection.outage().cause).toBe(AWAY);
  });

  const noMaster = new Error('Sentinel failed: invalid reply: null');
  const asking = (...happen: ((client: ScriptedClient) => void)[]) => {
    const { client, connection } = open({ status: 'connecting', options: SENTINELS });
    client.emit('sentinelError', noMaster);
    for (const each of happen) each(client);
    client.status = 'connecting';
    client.emit('error', AWAY);
    return connection.outage().cause;
  };

  it('is explained by the answers of the sentinels since the last connection', () => {
    expect(asking()).toMatchObject({ message: 'no sentinel knows a master of this name' });
    expect(
      asking((client) => {
        client.comeTo('ready');
      }),
    ).toBe(AWAY);
    expect(
      asking((client) => {
        client.status = 'connect';
        client.emit('error', new Error('lost'));
      }),
    ).toBe(AWAY);
  });
});

describe('A connection that leads to a replica', () => {
  const asked = async ({ client, run }: ReturnType<typeof open>) => {
    const before = client.steps.length;
    await run().catch(() => undefined);
    return client.steps.length > before;
  };

  it('is given up for another, less and less often', async () => {
    const made = open({ answer: () => REPLICA });
    const times: number[] = [];
    const start = performance.now();
    for (let time = 0; time <= 17_000; time += 50) {
      if (await asked(made)) times.push(performance.now() - start);
      await jest.advanceTimersByTimeAsync(50);
    }
    expect(times).toEqual([0, 100, 300, 700, 1_500, 3_100, 6_300, 11_300, 16_300]);
    expect(made.client.steps).toEqual(times.map(() => 'reconnect'));
    expect(made.connection.outage().cause).toBe(REPLICA);
  });
});

describe('The end of a connection', () => {
  it('is said to the server, and takes no longer than a command', async () => {
    const { client, connection } = open({ answer: silent });
    const closing = connection.close();
    await jest.advanceTimersByTimeAsync(999);
    expect(client.steps).toEqual([]);
    await jest.advanceTimersByTimeAsync(2);
    await closing;
    expect([client.sent, client.steps]).toEqual([[['quit']], ['disconnect']]);
    expect(() => client.emit('error', AWAY)).not.toThrow();
  });
});
