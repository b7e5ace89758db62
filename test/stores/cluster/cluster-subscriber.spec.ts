import { EventEmitter } from 'node:events';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { ClusterConnection } from '../../../lib/stores/redis/connection/cluster-connection.js';
import { ClusterSubscriber } from '../../../lib/stores/redis/messages/cluster-subscriber.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { slotOf } from '../../../lib/stores/redis/connection/slots.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedClient } from '../../doubles/scripted-client.js';

const AWAY = new Error('away');
const MOVED = errorReply('MOVED 1 127.0.0.1:7000');

/** A cluster of masters, each of which has the slots of some channels. */
class Slots {
  readonly client = new EventEmitter();
  looks = 0;
  readonly owners = new Map<number, string>();
  readonly connections = new Map<string, ServerConnection>();
  error: Error | undefined;

  constructor(public masters: string[]) {
    for (const node of masters) this.connections.set(node, connectionTo(node));
  }

  give(channel: string, node: string): void {
    this.owners.set(slotOf(channel), node);
  }

  async ready(): Promise<void> {
    if (this.error !== undefined) throw await Promise.resolve(this.error);
  }

  async nodes(): Promise<ServerConnection[]> {
    await this.ready();
    return this.masters.map((node) => this.connections.get(node)!);
  }

  ownerOf(slot: number): ServerConnection | undefined {
    return this.connections.get(this.owners.get(slot) ?? '');
  }

  isMaster(node: string): boolean {
    return this.masters.includes(node);
  }

  look(): void {
    this.looks++;
  }
}

const connectionTo = (node: string, client = new ScriptedClient(() => 1)) =>
  new ServerConnection(client.redis, node, 1_000, true);

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

function open(masters: string[], lookInterval?: number) {
  const slots = new Slots(masters);
  /** By node, the clients that were opened for messages. */
  const opened: { node: string; client: ScriptedClient }[] = [];
  let answer: (command: readonly unknown[]) => unknown = () => 1;
  const subscriber = new ClusterSubscriber(
    slots as unknown as ClusterConnection,
    ({ node }) => {
      const client = new ScriptedClient((command) => answer(command));
      opened.push({ node, client });
      return connectionTo(node, client);
    },
    100,
    lookInterval,
  );
  const heard: string[] = [];
  const listen = (channel: string, sharded?: boolean) =>
    subscriber.subscribe(channel, (message) => heard.push(`${channel}: ${message ?? 'look'}`), sharded);
  const sent = () =>
    opened.map(({ node, client }) => [node, ...client.sent.map((command) => command.join(' '))]);
  return {
    ...{ slots, opened, subscriber, heard, listen, sent },
    answerBy: (by: typeof answer) => {
      answer = by;
    },
  };
}

describe('A subscription on a cluster', () => {
  it('of a lock is at the node of its slot, and its kinds have connections of their own', async () => {
    const { slots, listen, sent } = open(['a', 'b']);
    for (const channel of ['{1}', '{2}', 'plain']) slots.give(channel, 'b');
    await listen('{1}');
    await listen('{2}', false);
    await listen('plain', true);
    expect(sent()).toEqual([
      ['b', 'subscribe {1}', 'subscribe {2}'],
      ['b', 'ssubscribe plain'],
    ]);
  });

  it('fails where no node has the slot, where there is no node, and where the cluster cannot be reached', async () => {
    const { slots, listen } = open(['a']);
    await expect(listen('{1}')).rejects.toMatchObject({ name: 'NotConnected', message: /slot/ });
    expect(slots.looks).toBe(1);
    await expect(open([]).listen('one')).rejects.toMatchObject({ name: 'NotConnected', message: /no node/ });
    slots.error = AWAY;
    slots.give('{1}', 'a');
    await expect(listen('{1}')).rejects.toBe(AWAY);
    await expect(listen('one')).rejects.toBe(AWAY);
  });

  it('follows its slot to another node, for the time of a command', async () => {
    const { slots, listen, sent, answerBy } = open(['a', 'b']);
    slots.give('{1}', 'a');
    answerBy(() => {
      slots.give('{1}', 'b');
      answerBy(() => 1);
      return MOVED;
    });
    await listen('{1}');
    expect(slots.looks).toBe(1);
    expect(sent()).toEqual([
      ['a', 'subscribe {1}'],
      ['b', 'subscribe {1}'],
    ]);
    answerBy(() => MOVED);
    await expect(listen('{2}')).rejects.toMatchObject({ name: 'NotConnected' });
    slots.give('{2}', 'a');
    await expect(listen('{2}')).rejects.toBe(MOVED);
    const tries = sent()[0]?.filter((command) => command === 'subscribe {2}').length;
    expect(tries).toBeGreaterThan(1);
    expect(tries).toBeLessThan(5);
  });
});

describe('The end of the subscriptions at a node', () => {
  const one = async () => {
    const made = open(['a']);
    made.slots.give('{1}', 'a');
    const subscription = await made.listen('{1}');
    return { ...made, subscription, client: made.opened[0]!.client };
  };

  it.each<[string, (client: ScriptedClient) => void]>([
    ['says so', (client) => client.emit('moved')],
    [
      'sends what was not asked for',
      (client) => client.emit('error', new Error('Command queue state error. If you can reproduce this')),
    ],
  ])('comes where the server %s, for its client cannot tell which', async (_, happen) => {
    const { client } = await one();
    happen(client);
    expect(client.steps).toEqual(['disconnect']);
  });

  it('with its connection makes the next one begin with another connection', async () => {
    const { client, slots, listen, sent, subscription } = await one();
    client.comeTo('close');
    client.comeTo('end');
    expect([slots.looks, subscription.active]).toEqual([1, false]);
    await new Promise(setImmediate);
    expect(client.steps).toEqual(['disconnect']);
    await listen('{1}');
    expect(sent()).toEqual([
      ['a', 'subscribe {1}', 'quit'],
      ['a', 'subscribe {1}'],
    ]);
  });

  it('comes for a node that is no master any more', async () => {
    const { client, slots, heard, listen, opened } = await one();
    slots.masters = [];
    slots.client.emit('refresh');
    expect(heard).toEqual(['{1}: look']);
    await new Promise(setImmediate);
    expect(client.steps).toEqual(['disconnect']);
    slots.masters = ['a'];
    await listen('{1}');
    // The former connection ends late.
    client.comeTo('end');
    await listen('{1}');
    expect(opened).toHaveLength(2);
  });
});

describe('A look at the slots', () => {
  it('ends the subscriptions whose slot has moved, and no other', async () => {
    const { slots, listen, heard } = open(['a', 'b']);
    jest.spyOn(Math, 'random').mockReturnValue(0);
    for (const channel of ['{1}', '{2}', 'three', 'four']) slots.give(channel, 'a');
    const bound = [await listen('{1}'), await listen('{2}')];
    const sharded = [await listen('three', true), await listen('four', true)];
    const free = await listen('five');
    for (const channel of ['{1}', 'three', 'five']) slots.give(channel, 'b');
    slots.client.emit('refresh');
    expect([...bound, ...sharded, free].map(({ active }) => active)).toEqual([
      ...[false, true, false, true],
      true,
    ]);
    expect(heard).toEqual(['{1}: look', 'three: look']);
  });

  it('comes now and then while there are subscriptions', async () => {
    jest.useFakeTimers();
    const { slots, listen } = open(['a'], 50);
    slots.give('{1}', 'a');
    slots.give('{2}', 'a');
    const [subscription] = [await listen('{1}'), await listen('{2}', true)];
    await jest.advanceTimersByTimeAsync(100);
    expect(slots.looks).toBe(2);
    subscription.close();
    await jest.advanceTimersByTimeAsync(100);
    expect(slots.looks).toBe(4);
  });

  it('does not come while there is none, nor where none is wanted', async () => {
    jest.useFakeTimers();
    const idle = open(['a'], 10_000);
    (await idle.listen('one')).close();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(idle.slots.looks).toBe(0);
    const { listen } = open(['a'], 0);
    const before = jest.getTimerCount();
    await listen('one');
    // The test of the connection only.
    expect(jest.getTimerCount()).toBe(before + 1);
  });
});

describe('The end of all subscriptions', () => {
  it('ends their connections, and nothing follows', async () => {
    jest.useFakeTimers();
    const { slots, listen, subscriber, opened } = open(['a', 'b'], 50);
    slots.give('{1}', 'a');
    slots.give('two', 'b');
    await listen('{1}');
    await listen('two', true);
    await subscriber.close();
    expect(opened.map(({ client }) => client.steps)).toEqual([['disconnect'], ['disconnect']]);
    expect([jest.getTimerCount(), slots.client.eventNames()]).toEqual([0, []]);
    await expect(listen('{1}')).rejects.toMatchObject({ name: 'NotConnected', message: /closed/ });
    expect(opened).toHaveLength(2);
    for (const { client } of opened) client.answer = () => AWAY;
    expect((await subscriber.obstacle()) === undefined).toBe(true);
  });
});
