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
    await server.client().del('lock:a');
    const winner = await other.acquire('a');
    // A process that waits looks at what it holds. All of this is over before the answer comes.
    const heirs = Array.from({ length: 3 }, () => mine.acquire('a'));
    const released = loser.release();
    let last = loser.fencingToken;
    for (const heir of heirs) {
      const lease = await heir;
      expect(lease.fencingToken).toBeGreaterThan(last);
      expect(lease.fencingToken).toBeLessThan(winner.fencingToken);
      last = lease.fencingToken;
      void lease.release();
    }
    await released;
    await winner.release();
  });

  it('each name of a multi-lock has a token far above its own last one', async () => {
    const server = await environment.server();
    const ahead = Date.now() * 1_000 + 600_000_000;
    const last = { a: ahead, c: ahead + 7 };
    for (const [name, token] of Object.entries(last))
      await server.client().set(fenceOf(`lock:${name}`), `${String(token)} former:1`);
    const locks = environment.service({ connection: server.url });
    const lease = await locks.acquire(['a', 'b', 'c']);
    const tokens = Object.fromEntries(lease.fencingTokens);
    expect(tokens).toMatchObject({ a: last.a + 1_000, c: last.c + 1_000 });
    expect(tokens.b).toBeLessThan(ahead);
    await lease.release();
    const next = await locks.acquire('c');
    expect(next.fencingToken).toBe(last.c + 2_000);
    await next.release();
  });
});
