import { once } from 'node:events';
import { type AddressInfo, connect as connectTo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../../scenarios/until.js';
import { isMessage, replyEnd } from '../resp.js';
import { TcpProxy } from '../tcp-proxy.js';
import { serverOfAll } from '../test-servers.js';

describe('TcpProxy', () => {
  const SILENCE = 100;

  const server = serverOfAll();
  let proxy: TcpProxy;
  let clients: Redis[];

  beforeEach(async () => {
    proxy = await TcpProxy.start(server.port);
    clients = [];
    await server.client().flushall();
  });

  afterEach(async () => {
    for (const client of clients) client.disconnect();
    await proxy.stop();
  });

  /** Fails what is in flight when the connection drops, and connects again at once. */
  async function connect(protocol: 2 | 3 = 3): Promise<Redis> {
    const client = new Redis(proxy.url, {
      protocol,
      maxRetriesPerRequest: 0,
      retryStrategy: () => 10,
      disconnectTimeout: 0,
    });
    clients.push(client);
    client.on('error', () => undefined);
    await client.ping();
    return client;
  }

  const silent = async (reply: Promise<unknown>) =>
    (await Promise.race([reply.catch(() => undefined), sleep(SILENCE, SILENCE)])) === SILENCE;

  it.each(['requestDelay', 'replyDelay'] as const)('delays by %s, and keeps the order', async (delay) => {
    const client = await connect();
    proxy[delay](300);
    const sent = performance.now();
    const first = client.incr('n');
    await until(() => proxy.underway(delay === 'requestDelay' ? 'requests' : 'replies') > 0);
    proxy[delay](0);
    const second = client.incr('n');
    expect(await Promise.all([first, second])).toEqual([1, 2]);
    expect(performance.now() - sent).toBeGreaterThan(298);
  });

  it('delivers a delayed request after its client has gone', async () => {
    const client = await connect();
    proxy.requestDelay(2_000);
    client.set('key', 'late').catch(() => undefined);
    await until(() => proxy.underway('requests') > 0);
    client.disconnect();
    expect(await server.client().get('key')).toBeNull();
    await until(async () => (await server.client().get('key')) === 'late');
  });

  it('drops replies, but not requests, and ends the connection that missed one', async () => {
    const client = await connect();
    proxy.dropReplies(true);
    const reply = client.incr('n');
    expect(await silent(reply)).toBe(true);
    expect(await server.client().get('n')).toBe('1');
    proxy.dropReplies(false);
    await expect(reply).rejects.toThrow();
    expect(await client.incr('n')).toBe(2);
  });

  it('cuts in place of a reply, after the request has been carried out', async () => {
    const client = await connect();
    proxy.cutAfterReplyBytes(0);
    await expect(client.incr('n')).rejects.toThrow();
    expect(await server.client().get('n')).toBe('1');
    expect(await client.incr('n')).toBe(2);
  });

  it('cuts in the middle of a reply, and after a whole one', async () => {
    const client = await connect();
    proxy.cutAfterReplyBytes('$4\r\nPO'.length);
    await expect(client.ping('PONG')).rejects.toThrow();
    await client.ping();

    const closed = new Promise((resolve) => client.once('close', resolve));
    proxy.cutAfterReplyBytes('$4\r\nPONG\r\n'.length);
    expect(await client.ping('PONG')).toBe('PONG');
    await closed;
  });

  it.each([2, 3] as const)('drops messages and nothing else, in RESP%d', async (protocol) => {
    const subscriber = await connect(protocol);
    const publisher = server.client();
    const received: string[] = [];
    const receive = (channel: string, message: string) => received.push(`${channel} ${message}`);
    subscriber.on('message', receive).on('smessage', receive);
    await subscriber.subscribe('plain');
    await subscriber.ssubscribe('sharded');

    proxy.dropMessages(true);
    expect(await publisher.publish('plain', 'lost')).toBe(1);
    expect(await publisher.spublish('sharded', 'lost')).toBe(1);
    await subscriber.subscribe('another');
    await subscriber.ping();
    proxy.dropMessages(false);
    await publisher.publish('plain', 'arrives');
    await publisher.spublish('sharded', 'arrives');
    await subscriber.ping();
    expect(received).toEqual(['plain arrives', 'sharded arrives']);
  });

  it('can deliver messages twice, or in another order', async () => {
    const subscriber = await connect();
    const received: string[] = [];
    subscriber.on('message', (_, message: string) => received.push(message));
    await subscriber.subscribe('channel');
    const publish = async (...messages: string[]) => {
      for (const message of messages) await server.client().publish('channel', message);
      await subscriber.ping();
      return received.splice(0);
    };
    proxy.messages('duplicated');
    expect(await publish('a', 'b')).toEqual(['a', 'a', 'b', 'b']);
    proxy.messages('reordered');
    expect(await publish('a', 'b', 'c')).toEqual(['b', 'a']);
    proxy.messages('delivered');
    expect(await publish('d')).toEqual(['c', 'd']);
  });

  it.each(['*', '>'])('knows a message of type %s wherever it is split', async (type) => {
    const reply = '$4\r\nPONG\r\n';
    const message = `${type}3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n`;
    const stream = reply + message + reply;
    for (let split = 0; split <= stream.length; split++) {
      expect(await replay(stream.slice(0, split), stream.slice(split))).toBe(reply + reply);
    }
  });
});

/** What comes out of a proxy without messages when a server sends these chunks, each in a packet of its own. */
async function replay(...chunks: string[]): Promise<string> {
  const server = createServer({ noDelay: true }, (socket) => {
    chunks.forEach((chunk, index) => setTimeout(() => socket.write(chunk), 2 * index));
    setTimeout(() => socket.end(), 2 * chunks.length);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy = await TcpProxy.start((server.address() as AddressInfo).port);
  proxy.dropMessages(true);
  const received = await text(connectTo({ port: proxy.port, host: '127.0.0.1' }));
  await proxy.stop();
  server.close();
  return received;
}

describe('The end of a reply', () => {
  const REPLIES = {
    'a status': '+OK\r\n',
    'an error': '-NOSCRIPT No matching script\r\n',
    'an integer': ':-1\r\n',
    'a bulk string with a line break': '$6\r\na\r\nb\r\n\r\n',
    'an empty bulk string': '$0\r\n\r\n',
    'a RESP2 null': '$-1\r\n',
    'a RESP2 null array': '*-1\r\n',
    'a RESP3 null': '_\r\n',
    'a boolean': '#t\r\n',
    'a double': ',-1\r\n',
    'a big number': '(-1\r\n',
    'a verbatim string': '=7\r\ntxt:one\r\n',
    'a bulk error': '!5\r\nERR x\r\n',
    'an empty array': '*0\r\n',
    'nested arrays': '*2\r\n*2\r\n:1\r\n$1\r\na\r\n*1\r\n*-1\r\n',
    'a map': '%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n$1\r\n*\r\n',
    'a set': '~2\r\n:1\r\n:2\r\n',
    'an attribute and its value': '|1\r\n+ttl\r\n:9\r\n$2\r\nhi\r\n',
  };

  const message = (type: string, kind: string) =>
    `${type}3\r\n$${String(kind.length)}\r\n${kind}\r\n$1\r\nc\r\n$1\r\n0\r\n`;

  describe('replyEnd', () => {
    it.each(Object.entries(REPLIES))('finds the end of %s, and no end of any part', (_, text) => {
      const between = Buffer.from(`:1\r\n${text}:2\r\n`);
      expect(replyEnd(between, 4)).toBe(4 + text.length);
      const whole = Buffer.from(text);
      for (let length = 0; length < text.length; length++) {
        expect(replyEnd(whole.subarray(0, length), 0)).toBeUndefined();
      }
    });
  });

  describe('isMessage', () => {
    it.each(['*', '>'])('knows messages of type %s from other replies', (type) => {
      expect(isMessage(Buffer.from(message(type, 'message')))).toBe(true);
      expect(isMessage(Buffer.from(message(type, 'smessage')))).toBe(true);
      expect(isMessage(Buffer.from(message(type, 'subscribe')))).toBe(false);
      expect(isMessage(Buffer.from(message(type, 'ssubscribe')))).toBe(false);
    });
  });
});
