import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { MemberStore } from '../../../lib/stores/quorum/member.js';
import { commandClient } from '../../../lib/stores/redis/clients.js';
import { ServerConnection } from '../../../lib/stores/redis/connection.js';
import { noteKeyOf } from '../../../lib/stores/redis/keys.js';
import { RedisMember } from '../../../lib/stores/redis/redis-member.js';
import { TestEnvironment } from '../../support/test-environment.js';

describe('RedisMember', () => {
  const environment = new TestEnvironment();

  afterEach(() => environment.end());

  function member(url: string): RedisMember {
    const connection = new ServerConnection(commandClient(url, 30_000), url, 2_000, true);
    environment.add(() => connection.close());
    return new RedisMember({} as MemberStore, connection, 'lock:');
  }

  it('never takes a server for older than it is, whatever second it started in', async () => {
    // The end of a second on the wall clock is where whole seconds are most wrong.
    for (const moment of [700, 800, 900]) {
      await sleep((1_000 + moment - (Date.now() % 1_000)) % 1_000);
      const begun = performance.now();
      const { url } = await environment.server();
      const one = member(url);
      for (let n = 0; n < 8; n++) {
        const { uptime = NaN } = await one.identify();
        expect(uptime).toBeLessThanOrEqual(performance.now() - begun);
        await sleep(100);
      }
    }
  });

  it('knows each run of a server, and its note', async () => {
    const server = await environment.server();
    const one = member(server.url);
    const first = await one.identify();
    expect(first.noted).toBeUndefined();
    expect(await one.note(first.runId ?? '', 60_000)).toBe(true);
    // The first note stays.
    expect(await one.note('0', 60_000)).toBe(false);
    expect(await one.identify()).toMatchObject({ runId: first.runId, noted: first.runId });
    expect(await server.client().pttl(noteKeyOf('lock:'))).toBeGreaterThan(50_000);
    const { generation } = one;
    await server.restart();
    await sleep(1_000);
    const second = await one.identify();
    expect(one.generation).toBeGreaterThan(generation);
    expect(second.runId).not.toBe(first.runId);
    expect(second.noted).toBeUndefined();
  });

  it('notes where the client was, also if the application switches it right after, and it pipelines by itself', async () => {
    const server = await environment.server();
    const client = new Redis(server.url, { enableAutoPipelining: true });
    environment.add(() => {
      client.disconnect();
    });
    const one = new RedisMember(
      {} as MemberStore,
      new ServerConnection(client, 'node', 2_000, false),
      'lock:',
    );
    await one.identify();
    const noted = one.note('run', 60_000);
    await Promise.resolve();
    const switched = client.select(3);
    expect(await noted).toBe(true);
    await switched;
    expect(await server.client().get(noteKeyOf('lock:'))).toBe('run');
  });

  it('knows nothing of a server that withholds INFO', async () => {
    const server = await environment.server();
    await server.client().call('ACL', 'SETUSER', 'default', '-info');
    expect(await member(server.url).identify()).toMatchObject({
      runId: undefined,
      uptime: undefined,
      noted: undefined,
    });
  });

  it.each(['0'.repeat(40), ''])('does not tell runs apart by an id that is hidden (%j)', async (runId) => {
    const one = member((await environment.server()).url);
    const answers = [`run_id:${runId}\r\nuptime_in_seconds:100\r\n`, null, ['1000', '0']];
    Object.assign(one.deployment, { send: () => Promise.resolve(answers.shift()) });
    expect(await one.identify()).toMatchObject({ runId: undefined, uptime: 99_000, noted: undefined });
  });

  it('reads the clock of a server, which is between the two', async () => {
    const one = member((await environment.server()).url);
    await one.identify();
    const before = Date.now() - performance.now();
    const { clock } = await one.identify();
    const after = Date.now() - performance.now();
    // The wall clock of this machine is the server's. It may be adjusted a little meanwhile, and counts whole ms.
    expect(clock.least).toBeLessThanOrEqual(Math.max(before, after) + 5);
    expect(clock.most).toBeGreaterThanOrEqual(Math.min(before, after) - 5);
    expect(clock.most).toBeGreaterThanOrEqual(clock.least);
  });
});
