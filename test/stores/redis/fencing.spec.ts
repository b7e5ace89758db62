import { afterEach, describe, expect, it } from '@jest/globals';
import { TestEnvironment } from '../../support/test-environment.js';
import { fenceOf } from '../../support/keys.js';

describe('While the clock of the server is behind the fence', () => {
  const environment = new TestEnvironment();

  afterEach(() => environment.end());

  it('what a loser still hands on has lesser tokens than the winner', async () => {
    const server = await environment.server();
    const ahead = Date.now() * 1_000 + 600_000_000;
    await server.client().set(fenceOf('lock:a'), `${String(ahead)} former:1`);
    const [mine, other] = [
      environment.service({ connection: server.url }),
      environment.service({ connection: server.url }),
    ];
    const loser = await mine.acquire('a');
    const heirs = Array.from({ length: 3 }, () => mine.acquire('a'));
    await server.client().del('lock:a');
    const winner = await other.acquire('a');
    await loser.release();
    let last = loser.fencingToken;
    for (const heir of heirs) {
      const lease = await heir;
      expect(lease.fencingToken).toBeGreaterThan(last);
      expect(lease.fencingToken).toBeLessThan(winner.fencingToken);
      last = lease.fencingToken;
      await lease.release();
    }
    await winner.release();
  });
});
