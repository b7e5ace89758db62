import { afterEach, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { TestEnvironment } from '../../support/test-environment.js';

const environment = new TestEnvironment();

afterEach(async () => {
  jest.restoreAllMocks();
  await environment.end();
});

it("ioredis still prints an error of the application's client to which the application does not listen", async () => {
  const printed = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const client = new Redis((await environment.server()).url);
  environment.add(() => {
    client.disconnect();
  });
  const locks = environment.service({ connection: client });
  await (await locks.acquire('a')).release();

  client.emit('error', new Error('nobody listens'));
  expect(printed.mock.calls.flat().join(' ')).toContain('Unhandled error event');

  printed.mockClear();
  const heard: Error[] = [];
  client.on('error', (error) => heard.push(error));
  client.emit('error', new Error('somebody listens'));
  expect(heard.map(({ message }) => message)).toEqual(['somebody listens']);
  expect(printed).not.toHaveBeenCalled();
  await (await locks.acquire('a')).release();
});
