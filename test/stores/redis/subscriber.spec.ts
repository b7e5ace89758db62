import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { commandClient, subscriberClient } from '../../../lib/stores/redis/connection/clients.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { HEARTBEAT, Subscriber } from '../../../lib/stores/redis/messages/subscriber.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';

const environment = TestEnvironment.ofEach();

const open = async () => {
  const server = await environment.server();
  const commands = environment.client(commandClient(server.url, 2_000));
  const connection = new ServerConnection(subscriberClient(commands), server.url, 2_000, true);
  const subscriber = new Subscriber(connection);
  environment.add(() => subscriber.close());
  return { server, subscriber };
};

it('a connection that comes back has its channels again, and its listeners are told', async () => {
  const { server, subscriber } = await open();
  const heard: (string | undefined)[] = [];
  const subscription = await subscriber.subscribe('a', (message) => heard.push(message));
  await server.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await until(() => heard.length > 0);
  await until(() => subscription.active);
  await until(() => heard.length === 2);
  await server.client().publish('a', 'hello');
  await until(() => heard.length === 3);
  expect(heard).toEqual([undefined, undefined, 'hello']);
});

it('a channel whose subscription was refused is subscribed with a later heartbeat', async () => {
  const { server, subscriber } = await open();
  const heard: (string | undefined)[] = [];
  const subscription = await subscriber.subscribe('a', (message) => heard.push(message));
  await server.client().acl('SETUSER', 'default', '-subscribe');
  await server.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await until(async () => (await subscriber.obstacle()) !== undefined);
  expect(subscription.active).toBe(false);
  await server.client().acl('SETUSER', 'default', '+subscribe');
  await until(() => subscription.active);
  await server.client().publish('a', 'hello');
  await until(() => heard.includes('hello'));
});

it('a connection that was lost with a command under way does not take the next one with it, on ioredis 5', async () => {
  const server = await environment.server();
  const given = new Redis5(server.url, { lazyConnect: true });
  const client = subscriberClient(given as unknown as Redis);
  const connection = new ServerConnection(client, server.url, 2_000, true);
  const subscriber = new Subscriber(connection);
  environment.add(() => subscriber.close());
  const heard: (string | undefined)[] = [];
  await subscriber.subscribe('a', (message) => heard.push(message));
  server.freeze();
  const asked = client.ping().catch(() => undefined);
  client.disconnect(true);
  await asked;
  server.thaw();
  await until(() => heard.length === 2);
  await sleep(HEARTBEAT + 500);
  expect(heard).toHaveLength(2);
});

it('a channel that belongs elsewhere before the server has confirmed it is not taken for one that works', async () => {
  const { server, subscriber } = await open();
  await subscriber.subscribe('other', () => undefined);
  const heard: (string | undefined)[] = [];
  const subscribing = subscriber.subscribe('goes', (message) => heard.push(message));
  subscriber.keep((channel) => channel === 'other');
  const former = await subscribing;
  expect(former.active).toBe(false);
  const present = await subscriber.subscribe('goes', (message) => heard.push(message));
  expect(present.active).toBe(true);
  await server.client().publish('goes', 'hello');
  await until(() => heard.includes('hello'));
});
