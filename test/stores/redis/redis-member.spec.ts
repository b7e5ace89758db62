import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { MemberStore } from '../../../lib/stores/quorum/member.js';
import { CHARTER_KEY } from '../../../lib/stores/redis/commands/charter.js';
import { commandClient } from '../../../lib/stores/redis/connection/clients.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { RedisMember } from '../../../lib/stores/redis/redis-member.js';
import { until } from '../../scenarios/until.js';
import { TestEnvironment } from '../../support/test-environment.js';

describe('RedisMember', () => {
  const environment = TestEnvironment.ofEach();

  function member(url: string): RedisMember {
    const connection = new ServerConnection(commandClient(url, 30_000), url, 2_000, true);
    environment.add(() => connection.close());
    return new RedisMember({} as MemberStore, connection);
  }

  const NUMBERS = { id: 'q', size: 3, longest: 1_000, allowed: 500, names: 'a b c' };

  it('knows each run of a server, and its charter, which only grows', async () => {
    const server = await environment.server();
    const one = member(server.url);
    const first = await one.identify();
    expect(first.charter).toBeUndefined();
    expect(await one.amend({ ...NUMBERS, names: undefined })).toBeUndefined();
    await one.amend({ ...NUMBERS, run: first.runId });
    await one.amend({ ...NUMBERS, longest: 900, allowed: 700, names: 'd e f', quarantined: 'x' });
    await one.amend({ ...NUMBERS, id: 'other', longest: 9_000 });
    const charter = { id: 'q', size: 3, longest: 1_000, allowed: 700, run: first.runId, quarantined: 'x' };
    expect(await one.identify()).toMatchObject({ runId: first.runId, charter });
    expect((await one.identify()).charter?.names.toSorted()).toEqual(['a b c', 'd e f']);
    expect(await server.client().pttl(CHARTER_KEY)).toBe(-1);
    const { generation } = one;
    await server.restart();
    await until(async () => (await one.identify().catch(() => first)).runId !== first.runId);
    expect(one.generation).toBeGreaterThan(generation);
    expect((await one.identify()).charter).toBeUndefined();
  });

  it('lets one founder at a time write a charter, and none where there is one', async () => {
    const one = member((await environment.server()).url);
    const founding = { ...NUMBERS, run: 'r', proposal: 'q 1000;' };
    expect(await one.amend(founding)).toBeUndefined();
    expect(await one.propose('q', 'r', 'q 1000;')).toBe(true);
    expect(await one.propose('q', 'r', 'q 1000;')).toBe(true);
    expect(await one.propose('q', 'r', 'q 10000;')).toBe(false);
    expect(await one.propose('p', 'r', 'p 1000;')).toBe(false);
    expect(await one.amend({ ...NUMBERS, id: 'p' })).toBeUndefined();
    expect(await one.amend({ ...founding, proposal: 'q 10000;' })).toBeUndefined();
    expect(await one.amend(founding)).toMatchObject({ run: 'r' });
    expect(await one.propose('q', 'r', 'q 1000;')).toBe(false);
  });

  it('counts for how long it has known a run, by its own clock', async () => {
    const one = member((await environment.server()).url);
    expect(await one.witness('r')).toBeLessThan(100);
    await until(async () => (await one.witness('r')) > 100);
    expect(await one.witness('other')).toBeLessThan(100);
    await one.forget('r');
    expect(await one.witness('r')).toBeLessThan(100);
  });

  it('has its charter under one key, whatever the prefix of the client, in the database of the locks', async () => {
    const server = await environment.server();
    const client = new Redis(server.url, { enableAutoPipelining: true, keyPrefix: 'app:' });
    environment.add(() => {
      client.disconnect();
    });
    const one = new RedisMember({} as MemberStore, new ServerConnection(client, 'node', 2_000, false));
    await one.identify();
    const amended = one.amend(NUMBERS);
    await Promise.resolve();
    const switched = client.select(3);
    expect(await amended).toMatchObject({ id: 'q' });
    await switched;
    expect(await server.client().keys('*')).toEqual([CHARTER_KEY]);
  });

  it('knows no run of a server that withholds INFO', async () => {
    const server = await environment.server();
    await server.client().call('ACL', 'SETUSER', 'default', '-info');
    expect(await member(server.url).identify()).toMatchObject({ runId: undefined, charter: undefined });
  });

  it.each(['0'.repeat(40), ''])('does not tell runs apart by an id that is hidden (%j)', async (runId) => {
    const one = member((await environment.server()).url);
    const answers = [`run_id:${runId}\r\nuptime_in_seconds:100\r\n`, ['1000']];
    Object.assign(one.deployment, { send: () => Promise.resolve(answers.shift()) });
    expect(await one.identify()).toEqual({ runId: undefined, time: 1_000, charter: undefined });
  });
});
