import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { HEARTBEAT, Subscriber } from '../../../lib/stores/redis/messages/subscriber.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedClient } from '../../doubles/scripted-client.js';

const AWAY = new Error('away');
const FORBIDDEN = errorReply('NOPERM no permissions to access a channel');

beforeEach(() => {
  jest.useFakeTimers();
});

function open(sharded?: boolean) {
  const client = new ScriptedClient(() => 1);
  const subscriber = new Subscriber(new ServerConnection(client.redis, 'node', 1_000, true), sharded);
  const heard: string[] = [];
  const listen = (channel: string, name = channel) =>
    subscriber.subscribe(channel, (message) => heard.push(`${name}: ${message ?? 'look'}`));
  /** The commands since the last time, in short. */
  const sent = () => client.sent.splice(0).map((command) => command.join(' '));
  return { client, subscriber, heard, listen, sent };
}

/** Lets all come to its end that waits for no time. */
const settled = () => jest.advanceTimersByTimeAsync(0);

describe('A subscription', () => {
  it('is made once for all its listeners, also at the same time, and each gets the messages', async () => {
    const { client, listen, heard, sent } = open();
    await Promise.all([listen('a', 'one'), listen('a', 'two'), listen('b')]);
    await listen('a', 'three');
    expect(sent()).toEqual(['subscribe a', 'subscribe b']);
    client.emit('message', 'a', 'hello');
    client.emit('message', 'other', 'hello');
    client.emit('smessage', 'b', 'hello');
    expect(heard).toEqual(['one: hello', 'two: hello', 'three: hello']);
  });

  it('at one node of a cluster has its own commands and messages', async () => {
    const { client, listen, heard, sent } = open(true);
    (await listen('a')).close();
    await listen('b');
    client.emit('smessage', 'b', 'hello');
    client.emit('message', 'b', 'hello');
    expect(heard).toEqual(['b: hello']);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(sent()).toEqual(['ssubscribe a', 'ssubscribe b', 'sunsubscribe a']);
  });

  it('is given up a second after its last listener has left', async () => {
    const { client, listen, heard, sent } = open();
    const [first, second] = [await listen('a'), await listen('a')];
    first.close();
    await jest.advanceTimersByTimeAsync(2_000);
    second.close();
    second.close();
    await jest.advanceTimersByTimeAsync(999);
    expect(sent()).toEqual(['subscribe a']);
    client.answer = () => AWAY;
    await jest.advanceTimersByTimeAsync(1);
    expect(sent()).toEqual(['unsubscribe a']);
    client.emit('message', 'a', 'hello');
    expect(heard).toEqual([]);
  });

  it('stays where another listener comes within that second', async () => {
    const { listen, sent } = open();
    (await listen('a')).close();
    await jest.advanceTimersByTimeAsync(900);
    await listen('a');
    await jest.advanceTimersByTimeAsync(2_000);
    expect(sent()).toEqual(['subscribe a']);
  });

  it('that is refused has no listener, and is tried anew by the next', async () => {
    const { client, subscriber, listen, heard, sent } = open();
    client.answer = () => AWAY;
    await expect(listen('a', 'one')).rejects.toBe(AWAY);
    client.answer = () => 1;
    const second = await listen('a', 'two');
    client.emit('message', 'a', 'hello');
    expect(heard).toEqual(['two: hello']);
    expect(sent()).toEqual(['subscribe a', 'subscribe a']);
    second.close();
    client.answer = () => AWAY;
    await expect(listen('b')).rejects.toBe(AWAY);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(subscriber.used).toBe(false);
  });
});

describe('A lost connection', () => {
  it('wakes the listeners once, and again when their channels are subscribed anew', async () => {
    const { client, listen, heard, sent } = open();
    const [a, b] = [await listen('a'), await listen('b')];
    expect([a.active, b.active]).toEqual([true, true]);
    client.comeTo('close');
    expect([a.active, b.active]).toEqual([false, false]);
    client.comeTo('close');
    expect(heard.splice(0)).toEqual(['a: look', 'b: look']);
    sent();
    client.comeTo('ready');
    await settled();
    expect(sent()).toEqual(['subscribe a', 'subscribe b']);
    expect([a.active, b.active]).toEqual([true, true]);
    expect(heard).toEqual(['a: look', 'b: look']);
  });

  it('wakes no listener where a channel could not be subscribed anew', async () => {
    const { client, listen, heard } = open();
    const subscription = await listen('a');
    client.comeTo('close');
    client.answer = () => AWAY;
    client.comeTo('ready');
    await settled();
    expect([heard, subscription.active]).toEqual([['a: look'], false]);
  });
});

describe('That messages come through', () => {
  it('is said by a server that answers, also that PING is withheld', async () => {
    const { client, subscriber, sent } = open();
    expect((await subscriber.obstacle()) === undefined).toBe(true);
    expect(sent()).toEqual(['ping']);
    client.answer = () => errorReply("NOPERM can't run 'ping'");
    expect((await subscriber.obstacle()) === undefined).toBe(true);
    client.answer = () => AWAY;
    expect((await subscriber.obstacle()) === undefined).toBe(false);
  });

  it('is not so while the user may not subscribe', async () => {
    const { client, subscriber, listen } = open();
    const trying = async (answer: unknown) => {
      client.answer = ([command]) => (command === 'subscribe' ? answer : 'PONG');
      const subscription = await listen('a').catch(() => undefined);
      subscriber.keep(() => false);
      subscription?.close();
      return (await subscriber.obstacle()) === undefined;
    };
    expect([await trying(1), await trying(FORBIDDEN), await trying(1)]).toEqual([true, false, true]);
    expect([await trying(FORBIDDEN), await trying(AWAY)]).toEqual([false, true]);
  });
});

describe('An idle connection', () => {
  it('is tested every few seconds while it has channels', async () => {
    const { client, subscriber, listen, sent } = open();
    expect(subscriber.used).toBe(false);
    const [a] = [await listen('a'), await listen('b')];
    expect(subscriber.used).toBe(true);
    client.answer = () => AWAY;
    await jest.advanceTimersByTimeAsync(2 * HEARTBEAT);
    expect(sent()).toEqual(['subscribe a', 'subscribe b', 'ping', 'ping']);
    a.close();
    await jest.advanceTimersByTimeAsync(HEARTBEAT);
    expect(sent()).toEqual(['unsubscribe a', 'ping']);
  });

  it('that is closed is left alone, with all its timers', async () => {
    const { client, subscriber, listen, sent } = open();
    await listen('a');
    (await listen('b')).close();
    sent();
    await subscriber.close();
    expect([sent(), client.steps, subscriber.used]).toEqual([['quit'], ['disconnect'], false]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
