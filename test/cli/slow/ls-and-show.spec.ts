import { beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LockService } from '../../../lib/index.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { SentinelDeployment } from '../../support/sentinel.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { call } from '../command-line.js';
import { serverOfAll } from '../../support/test-servers.js';

const HOSTILE = 'evil\u001b[2J\nnext\u202e';
const environment = TestEnvironment.ofAll();
const server = serverOfAll();
let holder: LockService;

beforeAll(async () => {
  holder = environment.service({ connection: server.url, label: 'worker-1' });
  const waiter = environment.service({ connection: server.url, label: 'worker-2', deadlock: 'off' });
  await holder.acquire('order:7');
  await holder.getFairLock(HOSTILE).acquire();
  await holder.getReadWriteLock('stock').read.acquire({ leaseTime: 600_000 });
  waiter.acquire('order:7', { waitTime: 3_600_000 }).catch(() => undefined);
  // Labels are known a second after that.
  await until(async () => (await at('ls', '--json')).stdout.split('"worker-1"').length === 4);
  await until(async () => (await at('show', 'order:7')).stdout.includes('worker-2'));
});

/** Patient: a busy machine may take seconds for an answer. */
const PATIENT = ['--timeout', '60s'];
const at = (...args: string[]) => call([...args, '--url', server.url, ...PATIENT]);

describe('ls', () => {
  it('lists kind, holders and waiters of each lock, by name, and escapes what moves a cursor', async () => {
    const { code, stdout, stderr } = await at('ls');
    expect([code, stderr]).toEqual([0, '']);
    const [titles, ...lines] = stdout.trimEnd().split('\n');
    expect(titles).toMatch(/^NAME +KIND +HELD BY +SINCE +LEFT +WAITING +LONGEST$/);
    expect(lines).toEqual([
      expect.stringMatching(/^evil\\u001b\[2J\\u000anext\\u202e +fair +worker-1 +\d\S+s +\d\S+s +0 +–$/),
      expect.stringMatching(/^order:7 +lock +worker-1 +\d\S+s +\d\S+s +1 +\d\S+s$/),
      expect.stringMatching(/^stock +read-write +worker-1 +\d\S+s +\d.*[ms] +0 +–$/),
    ]);
  });

  it('gives one JSON object, and says when there are more', async () => {
    const [all, first, held] = await Promise.all([
      at('ls', '--json'),
      at('ls', '--json', '--limit', '1'),
      at('ls', 'order:', '--waited', '--json'),
    ]);
    expect(JSON.parse(all.stdout)).toMatchObject({
      locks: [
        { name: HOSTILE, kind: 'fair', waiting: 0, longestWait: null },
        {
          name: 'order:7',
          holders: [
            {
              label: 'worker-1',
              since: expect.any(Number),
              remaining: expect.any(Number),
              fencingToken: expect.any(Number),
            },
          ],
          waiting: 1,
        },
        { name: 'stock' },
      ],
      more: false,
    });
    expect(all.stdout).not.toMatch(/[\u0000-\u0009\u001b\u202e]/);
    expect(JSON.parse(first.stdout)).toMatchObject({ locks: [expect.anything()], more: true });
    expect(JSON.parse(held.stdout)).toMatchObject({ locks: [{ name: 'order:7' }], more: false });
  });

  it('lists nothing where nothing is', async () => {
    expect(await at('ls', 'nothing:')).toMatchObject({ code: 0, stdout: '', stderr: 'There are no locks\n' });
    expect((await at('ls', '--prefix', 'other:', '--json')).stdout).toBe('{"locks":[],"more":false}\n');
  });
});

describe('show', () => {
  it('tells of holders and queue', async () => {
    const { code, stdout } = await at('show', 'order:7');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^order:7\nkind lock, fencing token \d+, free in \S+s unless it is renewed\n/);
    expect(stdout).toMatch(/HELD BY +SINCE.*\nworker-1 +\S+s +\S+s +exclusive +\S+:\d+\n/);
    expect(stdout).toMatch(/# +WAITS +FOR.*\n1 +worker-2 +\S+s +exclusive +\S+:\d+\n$/);
  });

  it('gives all of it as JSON, and null and exit code 1 without such a lock', async () => {
    const [lock, none, words] = await Promise.all([
      at('show', HOSTILE, '--json'),
      at('show', 'none', '--json'),
      at('show', 'none\u001b[2J'),
    ]);
    expect(JSON.parse(lock.stdout)).toMatchObject({
      name: HOSTILE,
      kind: 'fair',
      holders: [{ label: 'worker-1', mode: 'exclusive', since: expect.stringMatching(/^\d{4}-.*Z$/) }],
      remainingTime: expect.any(Number),
      fencingToken: expect.any(Number),
      waiters: { local: 0, processes: 0 },
      queue: [],
    });
    expect(none).toMatchObject({ code: 1, stdout: 'null\n', stderr: '' });
    expect(words).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'There is no lock "none\\u001b[2J" that is held\n',
    });
  });

  it('takes a name that begins like an option behind --', async () => {
    await holder.acquire('--job');
    const { url } = server;
    const [shown, listed] = await Promise.all([
      call(['show', '--json', '--url', url, ...PATIENT, '--', '--job']),
      call(['ls', '--json', '--url', url, ...PATIENT, '--', '--j']),
    ]);
    expect([shown.code, JSON.parse(shown.stdout)]).toEqual([0, expect.objectContaining({ name: '--job' })]);
    expect(JSON.parse(listed.stdout)).toMatchObject({ locks: [{ name: '--job' }] });
    expect(await holder.forceRelease('--job')).toBe(true);
  });

  it('reads no value of the application as a lock', async () => {
    await server.client().set('lock:text', 'mine');
    const { code, stderr } = await at('show', 'text');
    expect([code, stderr]).toEqual([65, expect.stringContaining('"text" cannot be used as')]);
  });
});

describe('A wrong call', () => {
  it.each([
    [[], 'a command is missing'],
    [['lss'], '"lss" is not a command: did you mean ls?'],
    [['redis://:secret@host'], 'the first argument is not a command'],
    [['ls'], 'no Redis is named: give one of --url, --cluster, --sentinel, --nodes, or set REDIS_URL'],
    [['ls', '--pasword=secret'], '--pasword is not an option of this command: see --help'],
    [['ls', '--limits', '1'], 'did you mean --limit?'],
    [
      ['show', '-job'],
      '-j is not an option of this command: see --help; put names that start with - after --',
    ],
    [['ls', '--limit', 'secret'], '--limit must be a whole number from 1 to 999,999,999'],
    [['ls', '--url', '--json'], '--url needs a value'],
    [['ls', '--url', ''], '--url needs a value'],
    [['ls', '--url', 'redis://a', '--prefix', '--json'], '--prefix needs a value'],
    [['ls', '--json=secret'], '--json takes no value'],
    [['ls', '--json', '--json'], '--json is given more than once'],
    [['ls', 'a', 'secret'], 'there are more arguments than this command takes'],
    [['ls', '--held', '--waited', '--url', 'redis://a'], 'only one of --held and --waited may be given'],
    [
      ['ls', '--timeout', 'secret', '--url', 'redis://a'],
      '--timeout: must be a whole number of milliseconds',
    ],
    [['show', '--url', 'redis://a'], '<name> is missing'],
    [['ls', '--url', 'redis://a', '--nodes', 'redis://b'], 'only one of --url, --nodes may be given'],
    [
      ['ls', '--timeout', '1e400', '--url', 'redis://a'],
      "milliseconds from 1 to 31536000000 (one year), or a text such as '30s' or '5m'\n",
    ],
    [['ls', '--cluster', 'a:1,,secret'], '--cluster: an address is missing before or after a comma'],
    [['ls', '--sentinel', 'a:1'], '--sentinel and --master belong together'],
    [
      ['ls', '--url', 'http://:secret@a'],
      '--url: a URL must start with redis:// or rediss:// (found: http:)',
    ],
    [['ls', '--url', 'unix:'], '--url: a socket is written unix:///path/of/redis.sock'],
    [['ls', '--nodes', 'redis://:secret@a,redis://b'], 'nodes: '],
    [['ls', '--url', 'redis://a', '--prefix', '~ndl:'], 'keyPrefix: '],
  ])('%j exits with 64 and the rule', async (args, rule) => {
    const { code, stdout, stderr } = await call(args);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^nestjs-distributed-lock: /);
    expect(stderr).toContain(rule);
    expect(stderr).not.toContain('secret');
  });
});

describe('Where the locks are', () => {
  it('is told by each way, and a password comes with the environment as well', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'lock-cli-'));
    environment.add(() => rm(directory, { recursive: true }));
    const socketPath = join(directory, 'redis.sock');
    const socket = await environment.server({ args: ['--unixsocket', socketPath, '--requirepass', 'word'] });
    const locks = environment.service({
      connection: { host: '127.0.0.1', port: socket.port, password: 'word', db: 1 },
    });
    await locks.acquire('here');
    const host = `127.0.0.1:${String(socket.port)}`;
    const listing = (...args: string[]) =>
      call(['ls', '--json', ...PATIENT, ...args], { REDIS_PASSWORD: 'word' });
    const outcomes = await Promise.all([
      listing('--url', `redis://${host}/1`),
      call(['ls', '--json', ...PATIENT], { REDIS_URL: `redis://:word@${host}/1` }),
      listing('--url', `unix://${socketPath}?db=1`),
    ]);
    expect(outcomes.map(({ code, stdout }) => [code, stdout.includes('"here"')])).toEqual(
      outcomes.map(() => [0, true]),
    );
    const wrong = await call(['ls', ...PATIENT, '--url', `redis://user:secret@${host}`]);
    expect([wrong.code, wrong.stderr]).toEqual([
      69,
      expect.stringMatching(/^nestjs-distributed-lock: Redis cannot be used: .*WRONGPASS.*\n$/),
    ]);
    expect(wrong.stderr).not.toContain('secret');
  });

  it('may be a cluster, Sentinel or the nodes of a quorum', async () => {
    const nodes = await Promise.all([1, 2, 3].map(() => environment.server()));
    const urls = nodes.map(({ url }) => url);
    const [cluster, sentinel] = await Promise.all([RedisCluster.start(), SentinelDeployment.start()]);
    environment.add(() => Promise.all([cluster.stop(), sentinel.stop()]));
    const hosts = (ports: readonly number[]) => ports.map((port) => `127.0.0.1:${String(port)}`).join();
    const ways: [Parameters<TestEnvironment['service']>[0], string[]][] = [
      [
        { connection: { cluster: cluster.addresses } },
        ['--cluster', hosts(cluster.servers.slice(0, 2).map(({ port }) => port))],
      ],
      [{ connection: sentinel.connection }, ['--sentinel', hosts(sentinel.ports), '--master', 'locks']],
      [{ nodes: urls }, ['--nodes', urls.join()]],
    ];
    for (const [options, args] of ways) {
      const name = args[0] ?? '';
      await environment.service(options).acquire(name);
      const { code, stdout } = await call(['ls', '--json', ...PATIENT, ...args]);
      expect([name, code, stdout]).toEqual([name, 0, expect.stringContaining(`"${name}"`)]);
    }
    const unreachable = await call([
      'show',
      'name',
      '--nodes',
      'redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3',
    ]);
    expect(unreachable).toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/^nestjs-distributed-lock: Redis cannot be used: .*ECONNREFUSED.*\n$/),
    });
  });

  it('that does not answer is one line and exit code 69, within --timeout', async () => {
    const frozen = await environment.server();
    frozen.freeze();
    const [gone, silent] = await Promise.all([
      call(['ls', '--url', 'redis://:secret@127.0.0.1:1', '--timeout', '3s']),
      call(['show', 'name', '--url', frozen.url, '--timeout', '300ms']),
    ]);
    frozen.thaw();
    expect([gone.code, silent.code]).toEqual([69, 69]);
    expect(gone.stderr).toMatch(/^nestjs-distributed-lock: Redis cannot be used: .*ECONNREFUSED.*\n$/);
    expect(silent.stderr).toBe('nestjs-distributed-lock: Redis cannot be used: no answer within 300 ms\n');
  });
});
