import { describe, expect, it } from '@jest/globals';
import { commandClient } from '../../../lib/stores/redis/connection/clients.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { acquire } from '../../../lib/stores/redis/commands/script.js';
import { TestEnvironment } from '../../support/test-environment.js';

describe('An acquisition that is given up before the server knows its script', () => {
  const environment = TestEnvironment.ofEach();

  it('is not sent again, and says so instead of reporting a fault of the server', async () => {
    const server = await environment.server();
    const connection = new ServerConnection(commandClient(server.url, 2_000), server.url, 2_000, true);
    environment.add(() => connection.close());
    await connection.send((client) => client.ping());
    const acquisition = { unwanted: false };
    const answer = connection.run(acquire, ['lock:a'], [], acquisition);
    acquisition.unwanted = true;
    await expect(answer).rejects.toMatchObject({ name: 'TakenBack' });
    const { evalsha, eval: whole } = await server.commandCalls();
    expect({ evalsha, whole }).toEqual({ evalsha: 1, whole: undefined });
  });
});
