import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Change, MemberStore } from '../../../lib/stores/quorum/member.js';
import { CHARTER_KEY } from '../../../lib/stores/redis/commands/charter.js';
import { commandClient } from '../../../lib/stores/redis/connection/clients.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { RedisMember } from '../../../lib/stores/redis/redis-member.js';
import { until } from '../../scenarios/until.js';
import { TestEnvironment } from '../../support/test-environment.js';

describe('RedisMember', () => {
  const environment = TestEnvironment.ofEach();

  function member(url: string): RedisMember {
    const connection = new ServerConnection(commandClient(url, 2_000), url, 2_000, true);
    environment.add(() => connection.close());
    return new RedisMember({} as MemberStore, connection);
  }

  const NUMBERS = { id: 'q', size: 3, longest: 1_000, names: 'a b c' };
  const charterOf = async (one: RedisMember, change?: Change) => (await one.charter(change)).charter;

  it('knows each run of a server, and its charter, whose longest lease only grows', async () => {
    const server = await environment.server();
    const one = member(server.url);
    const run = await one.run();
    expect(await charterOf(one)).toBeUndefined();
    expect(await charterOf(one, { ...NUMBERS, names: undefined })).toBeUndefined();
    await one.charter({ ...NUMBERS, run, allowed: 500 });
    await one.charter({ ...NUMBERS, longest: 900, allowed: 700, names: 'd e f', quarantined: 'x' });
    await one.charter({ ...NUMBERS, id: 'other', longest: 9_000 });
    const charter = { id: 'q', size: 3, longest: 1_000, allowed: 700, run, quarantined: 'x' };
    expect(await charterOf(one)).toMatchObject(charter);
    expect((await charterOf(one))?.names.toSorted()).toEqual(['a b c', 'd e f']);
    expect(await server.client().pttl(CHARTER_KEY)).toBe(-1);
    const { generation } = one;
    await server.restart();
    await until(async () => (await one.run().catch(() => run)) !== run);
    expect(one.generation).toBeGreaterThan(generation);
    expect(await charterOf(one)).toBeUndefined();
  });

  it('keeps the first claim of a run', async () => {
    const one = member((await environment.server()).url);
    const claimed = async (run: string, allowed: number) =>
      (await charterOf(one, { ...NUMBERS, claim: { run, allowed } }))?.claim;
    expect(await claimed('r', 2_000)).toEqual({ run: 'r', allowed: 2_000 });
    expect(await claimed('r', 3_000)).toEqual({ run: 'r', allowed: 2_000 });
    expect(await claimed('r2', 1_000)).toEqual({ run: 'r2', allowed: 1_000 });
  });

  it('keeps the longest hold of two raises at once, and takes that of the process that gives a vote', async () => {
    const one = member((await environment.server()).url);
    const allowed = async (change: Partial<Change>) =>
      (await charterOf(one, { ...NUMBERS, ...change }))?.allowed;
    expect(await allowed({ allowed: 3_000 })).toBe(3_000);
    expect(await allowed({ allowed: 2_000 })).toBe(3_000);
    expect(await allowed({ allowed: 2_500, quarantined: 'r' })).toBe(2_500);
    expect(await allowed({ allowed: 2_000, run: 'r' })).toBe(2_000);
  });

  it('has its charter under one key, whatever the prefix of the client, in the database of the locks', async () => {
    const server = await environment.server();
    const client = environment.client(
      new Redis(server.url, { enableAutoPipelining: true, keyPrefix: 'app:' }),
    );
    const one = new RedisMember({} as MemberStore, new ServerConnection(client, 'node', 2_000, false));
    await one.charter();
    const changed = charterOf(one, NUMBERS);
    await Promise.resolve();
    const switched = client.select(3);
    expect(await changed).toMatchObject({ id: 'q' });
    await switched;
    expect(await server.client().keys('*')).toEqual([CHARTER_KEY]);
  });

  it.each(['0'.repeat(40), ''])('does not tell runs apart by an id that is hidden (%j)', async (runId) => {
    const one = member((await environment.server()).url);
    const answer = `run_id:${runId}\r\nuptime_in_seconds:100\r\n`;
    Object.assign(one.deployment, { send: () => Promise.resolve(answer) });
    expect(await one.run()).toBeUndefined();
  });
});
