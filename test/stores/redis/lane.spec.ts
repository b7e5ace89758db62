import { beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { commandClient } from '../../../lib/stores/redis/connection/clients.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { replyCode } from '../../../lib/stores/redis/connection/redis-errors.js';
import { acquire, inspect, release, renew } from '../../../lib/stores/redis/commands/script.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { serverOfEach } from '../../support/test-servers.js';

const LEASE = 30_000;
const STAY = 60_000;
const OWNER = 'client:1';

describe('Scripts that are asked for in one turn', () => {
  const environment = TestEnvironment.ofEach();
  const server = serverOfEach();
  let redis: Redis;
  let connection: ServerConnection;

  beforeEach(async () => {
    redis = server.client();
    connection = connect();
    await Promise.all(['warm', 'up', 'lane'].map((name) => take(name)));
    await give('warm');
    await redis.flushall();
    await redis.config('RESETSTAT');
  });

  const connect = (url = server.url, timeout = 2_000) => {
    const made = new ServerConnection(commandClient(url, 2_000), url, timeout, true);
    environment.add(() => made.close());
    return made;
  };

  const keysOf = (name: string) => [name, `${name}:fence`, `${name}:queue`];
  const take = (name: string, owner = OWNER, acquisition = { unwanted: false }, over = connection) =>
    over.run(acquire, keysOf(name), [owner, LEASE, 0, STAY], acquisition);
  const give = (name: string, owner = OWNER, over = connection) =>
    over.run(release, keysOf(name), [owner, 'PUBLISH', `released:${name}`, 0, STAY, 0, '']);
  const names = (count: number) => Array.from({ length: count }, (_, n) => `lock:${String(n)}`);
  const commands = async () => {
    const { evalsha = 0, eval: whole = 0 } = await server.commandCalls();
    return evalsha + whole;
  };
  const tokens = (count: number) => Array.from({ length: count }, () => expect.any(Number));

  it('travel as one command, but for the first, which does not wait', async () => {
    expect(await Promise.all(names(20).map((name) => take(name)))).toEqual(tokens(20));
    expect(await commands()).toBe(2);
    expect(await Promise.all(names(20).map((name) => give(name)))).toEqual(names(20).map(() => 1));
    expect(await commands()).toBe(4);
    expect(await redis.keys('*')).toHaveLength(20); // the fences
  });

  it('are carried out in the order in which they were asked for', async () => {
    const answers = [];
    for (let n = 0; n < 5; n++)
      answers.push(take('a', `client:${String(n)}`), give('a', `client:${String(n)}`));
    const replies = await Promise.all(answers);
    expect(replies).toEqual(Array.from({ length: 5 }, () => [expect.any(Number), 1]).flat());
  });

  it('are carried out before what is asked for after them and travels alone', async () => {
    const [, , state] = await Promise.all([
      take('a'),
      take('b'),
      connection.run(inspect, keysOf('b'), ['NUMSUB', 'released:b']),
    ]);
    expect(JSON.stringify(state)).toContain(OWNER);
    const [, , ttl] = await Promise.all([
      take('c'),
      take('d'),
      connection.send((client) => client.pttl('d')),
    ]);
    expect(ttl).toBeGreaterThan(0);
  });

  it('fail alone: a key of another type, an argument that is none, memory that is full', async () => {
    await redis.set('text', 'of the application');
    const replies = await Promise.allSettled([
      take('a'),
      take('b'),
      take('text'),
      connection.run(acquire, keysOf('bad'), [OWNER, 'no number', 0, STAY]),
      connection.run(renew, ['b', 'b:fence', 'text', 'text:fence'], [STAY, OWNER, LEASE, OWNER, LEASE]),
      take('c'),
    ]);
    expect(replies).toMatchObject([
      { value: expect.any(Number) },
      { value: expect.any(Number) },
      { reason: { name: 'ReplyError', message: expect.stringMatching(/^WRONGTYPE /) } },
      { reason: { name: 'ReplyError' } },
      { value: [1, -2] },
      { value: expect.any(Number) },
    ]);
    expect(await redis.get('text')).toBe('of the application');

    await redis.config('SET', 'maxmemory', '1');
    const full = await Promise.allSettled([give('a'), take('d'), give('b')]);
    expect(full).toMatchObject([{ value: 1 }, { status: 'rejected' }, { value: 1 }]);
    expect(full.map((answer) => (answer.status === 'rejected' ? replyCode(answer.reason) : ''))).toEqual([
      '',
      'OOM',
      '',
    ]);
    await redis.config('SET', 'maxmemory', '0');
    expect(await redis.exists('d', 'd:fence')).toBe(0);
  });

  it('that were given up in that turn are not sent', async () => {
    const acquisition = { unwanted: false };
    const [first, unwanted, last] = [take('a'), take('b', OWNER, acquisition), take('c')];
    acquisition.unwanted = true;
    await expect(unwanted).rejects.toMatchObject({ name: 'TakenBack' });
    expect(await Promise.all([first, last])).toEqual(tokens(2));
    expect(await redis.exists('b')).toBe(0);
  });

  it('are sent again whole where the server has forgotten them, without those given up meanwhile', async () => {
    await redis.script('FLUSH');
    const acquisition = { unwanted: false };
    const answers = [take('a'), take('b'), take('c', OWNER, acquisition), take('d')];
    const c = answers[2];
    await new Promise<void>((resolve) => {
      process.nextTick(resolve);
    });
    acquisition.unwanted = true;
    await expect(c).rejects.toMatchObject({ name: 'TakenBack' });
    expect(await Promise.all(answers.filter((answer) => answer !== c))).toEqual(tokens(3));
    expect(await redis.exists('c')).toBe(0);
  });

  it('are not overtaken where the server does not know them yet', async () => {
    const fresh = await environment.server();
    const other = connect(fresh.url);
    await take('a', OWNER, undefined, other);
    await give('a', OWNER, other);
    await Promise.all([take('a', OWNER, undefined, other)]);
    // The two releases are the first that share a command.
    const given = [give('x', OWNER, other), give('y', OWNER, other), give('a', OWNER, other)];
    await new Promise(setImmediate);
    const taken = take('a', 'client:2', undefined, other);
    expect(await Promise.all(given)).toEqual([0, 0, 1]);
    expect(await taken).toEqual(expect.any(Number));
  });

  it('inside of a transaction of the application are not taken for carried out', async () => {
    const shared = environment.client(new Redis(server.url));
    const over = new ServerConnection(shared, 'shared', 500, false);
    await Promise.all([take('a', OWNER, undefined, over), take('b', OWNER, undefined, over)]);
    await shared.multi({ pipeline: false });
    const replies = await Promise.allSettled(
      ['c', 'd', 'e'].map((name) => take(name, OWNER, undefined, over)),
    );
    expect(replies.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(replies[1]).toMatchObject({ reason: { name: 'UnexpectedReply', reply: 'QUEUED' } });
    await shared.discard();
    await over.close();
  });

  it('are sent one by one where whole scripts are forbidden, for the server may know each of them', async () => {
    const other = connect((await environment.server()).url);
    const its = other.client;
    await take('a', OWNER, undefined, other);
    await give('a', OWNER, other);
    await its.acl('SETUSER', 'default', '-eval');
    expect(await Promise.all(names(5).map((name) => take(name, OWNER, undefined, other)))).toEqual(tokens(5));
    expect(await Promise.all(names(5).map((name) => give(name, OWNER, other)))).toEqual([1, 1, 1, 1, 1]);
  });

  it('are sent one by one, whole, where EVALSHA is forbidden', async () => {
    await redis.acl('SETUSER', 'default', '-evalsha');
    expect(await Promise.all(names(5).map((name) => take(name)))).toEqual(tokens(5));
    expect(await Promise.all(names(5).map((name) => give(name)))).toEqual([1, 1, 1, 1, 1]);
    await redis.acl('SETUSER', 'default', '+evalsha');
    expect((await server.commandCalls()).eval).toBeGreaterThanOrEqual(7);
  });
});
