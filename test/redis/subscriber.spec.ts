import { afterEach, expect, it } from '@jest/globals';
import { commandClient } from '../../lib/stores/redis/clients.js';
import { RedisConnection } from '../../lib/stores/redis/connection.js';
import { Subscriber } from '../../lib/stores/redis/subscriber.js';
import { Cast } from '../scenarios/cast.js';
import { until } from '../scenarios/until.js';

const cast = new Cast();

afterEach(() => cast.end());

it('a channel that belongs elsewhere is given up, and who listens there is told; the others stay', async () => {
  const server = await cast.server();
  const connection = new RedisConnection(commandClient(server.url, 30_000), server.url, 2_000, true);
  const subscriber = new Subscriber(connection);
  cast.add(() => subscriber.close());
  const heard: string[] = [];
  const [stays, goes] = await Promise.all(
    ['stays', 'goes'].map((name) =>
      subscriber.subscribe(name, (message) => heard.push(`${name}: ${message ?? 'look'}`)),
    ),
  );
  subscriber.keep((channel) => channel === 'stays');
  expect([stays?.active, goes?.active]).toEqual([true, false]);
  expect(heard).toEqual(['goes: look']);
  await until(async () => (await server.client().pubsub('CHANNELS')).length === 1);
  await server.client().publish('stays', 'hello');
  await until(() => heard.includes('stays: hello'));
});
