import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { LockModuleOptions } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { COMMANDS } from '../../../support/script-commands.js';
import { handedOver } from '../handed-over.js';
import { refusal } from '../refusal.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { MASTER_ARGS, startReplica } from '../../../support/replicas.js';

const environment = TestEnvironment.ofEach();
let server: RedisServer;

const service = (options: LockModuleOptions = {}) =>
  environment.service({ connection: server.url, ...options });
const forbid = (...rules: string[]) => server.client().call('ACL', 'SETUSER', 'default', ...rules);
const renamed = (...commands: string[]) =>
  commands.flatMap((command) => ['--rename-command', command, `hidden-${command}`]);

/** A case in which no lock can be taken, though PING and INFO are answered. */
type Case = [
  title: string,
  reason: RegExp,
  args: string[],
  spoil: () => Promise<unknown>,
  mend: (() => Promise<unknown>) | undefined,
];

const CASES: Case[] = [
  [
    'no script may be run',
    /NOPERM.*'eval' command/,
    [],
    () => forbid('-evalsha', '-eval'),
    () => forbid('+evalsha', '+eval'),
  ],
  [
    'scripts have been renamed away',
    /unknown command 'eval'/,
    renamed('EVAL', 'EVALSHA'),
    async () => undefined,
    undefined,
  ],
  [
    'a command of the scripts may not be run',
    /executing the script|ACL failure in script/,
    [],
    () => forbid('-hset'),
    () => forbid('+hset'),
  ],
  [
    'a command of the scripts has been renamed away',
    /Unknown (?:Redis )?command/,
    renamed('HSET'),
    async () => undefined,
    undefined,
  ],
  [
    'the keys are not for this user',
    /access.*key/,
    [],
    () => forbid('resetkeys', '~other:*'),
    () => forbid('~*'),
  ],
  [
    'nothing can be saved',
    /MISCONF/,
    [],
    async () => {
      const [, directory = ''] = await server.client().config('GET', 'dir');
      // No file can take a directory's place.
      await mkdir(join(directory, 'dump.rdb'));
      await server.client().config('SET', 'save', '3600 1');
      await server.client().bgsave();
      await until(async () => (await server.client().info('persistence')).includes('last_bgsave_status:err'));
    },
    () => server.client().config('SET', 'stop-writes-on-bgsave-error', 'no'),
  ],
];

describe('Health is down where', () => {
  it.each(CASES)('%s, with the reason', async (_, reason, args, spoil, mend) => {
    server = await environment.server({ args });
    await spoil();
    const locks = service();
    const { status, nodes } = await locks.health();
    expect([status, nodes[0]?.error]).toEqual(['down', expect.stringMatching(reason)]);
    if (mend === undefined) return;
    await mend();
    expect(await locks.health()).toMatchObject({ status: 'up' });
    await (await locks.acquire('key')).release();
  });

  it('replicas are missing, or do not confirm', async () => {
    server = await environment.server({ args: MASTER_ARGS });
    const locks = service({ replication: { replicas: 1, timeout: 200 } });
    const alone = await locks.health();
    expect([alone.status, alone.nodes[0]?.error]).toEqual([
      'down',
      expect.stringMatching(/^0 of 1 replicas/),
    ]);
    const replica = await startReplica(server);
    environment.add(() => replica.stop());
    await until(async () => (await locks.health()).status === 'up');
    replica.freeze();
    expect(await locks.health()).toMatchObject({ status: 'down' });
    replica.thaw();
    await until(async () => (await locks.health()).status === 'up');
  });
});

describe('Every command of every script is tried', () => {
  /** Most locks do without these. */
  const SPARED = ['MGET', 'PUBLISH', 'PUBSUB'];
  /** Locks do not need these, but lists of them. */
  const OF_LISTS = ['INFO', 'SCAN'];

  it.each(COMMANDS.filter((command) => command !== 'CLUSTER' && !OF_LISTS.includes(command)))(
    '%s: health says what is missing',
    async (command) => {
      server = await environment.server();
      const locks = service();
      await forbid(`-${command}`);
      const status = SPARED.includes(command) ? 'degraded' : 'down';
      const lacking = {
        status,
        nodes: [{ status, error: expect.stringMatching(new RegExp(`\\b${command}\\b`)) }],
      };
      expect(await locks.health()).toMatchObject(lacking);
      // The same before the next and after it: nothing of a trial that was broken off is in the way.
      expect(await locks.health()).toMatchObject(lacking);
      await forbid(`+${command}`);
      expect(await locks.health()).toMatchObject({ status: 'up', nodes: [{ error: undefined }] });
    },
  );

  it('CLUSTER MYID: the same on a cluster', async () => {
    const cluster = await RedisCluster.start();
    environment.add(() => cluster.stop());
    const locks = environment.service({ connection: { cluster: cluster.addresses } });
    expect(await locks.health()).toMatchObject({ status: 'up' });
    for (const node of cluster.servers)
      await node.client().call('ACL', 'SETUSER', 'default', '-cluster|myid');
    const { status, nodes } = await locks.health();
    expect([status, nodes[0]?.error]).toEqual(['down', expect.stringMatching(/CLUSTER/)]);
  });
});

it.each([
  ['scripts have been renamed away', renamed('EVAL', 'EVALSHA'), /unknown command/],
  ['a command of the scripts has been renamed away', renamed('HSET'), /Unknown (?:Redis )?command/],
])('Where %s, a lock is refused at once and for good', async (_, args, reason) => {
  server = await environment.server({ args });
  expect(await refusal(service())).toMatch(reason);
});

const LACKS_EVALSHA: [title: string, args: string[], spoil: () => Promise<unknown>][] = [
  ['is forbidden', [], () => forbid('-evalsha')],
  ['has been renamed away', renamed('EVALSHA'), async () => undefined],
];

describe('Where only EVALSHA', () => {
  it.each(LACKS_EVALSHA)(
    '%s, whole scripts are sent: all works, without a command more',
    async (_, args, spoil) => {
      server = await environment.server({ args });
      await spoil();
      const [one, two] = [service(), service()];
      await handedOver(one, two, (lease) => lease.extend(12_000));
      expect(await one.health()).toMatchObject({ status: 'up' });
      await server.resetCommandCalls();
      await (await one.acquire('key')).release();
      const { eval: whole, evalsha, 'hidden-evalsha': hidden } = await server.commandCalls();
      expect([whole, evalsha, hidden]).toEqual([2, undefined, undefined]);
    },
  );
});

describe('The lock that health takes', () => {
  beforeEach(async () => {
    server = await environment.server({ args: [...MASTER_ARGS, '--appendonly', 'yes'] });
  });

  it('finds no room where memory is full: what is held is kept, so health is degraded', async () => {
    const locks = service();
    await locks.acquire('held');
    await server.client().config('SET', 'maxmemory', '1mb');
    await until(async () => (await locks.health()).status !== 'up');
    expect(await locks.health()).toMatchObject({
      status: 'degraded',
      nodes: [{ error: expect.stringContaining('its memory is full') }],
    });
    // The same where the user may not ask for INFO.
    await server.client().call('ACL', 'SETUSER', 'app', 'on', '>word', '~*', '&*', '+@all', '-info');
    const quiet = service({
      connection: { port: server.port, username: 'app', password: 'word', enableReadyCheck: false },
    });
    expect(await quiet.health()).toMatchObject({
      status: 'degraded',
      nodes: [{ error: expect.stringContaining('its memory is full') }],
    });
  });
});

it('Each master of a cluster is tried', async () => {
  const cluster = await RedisCluster.start();
  environment.add(() => cluster.stop());
  const locks = environment.service({ connection: { cluster: cluster.addresses } });
  expect(await locks.health()).toMatchObject({
    status: 'up',
    nodes: [{ status: 'up' }, { status: 'up' }, { status: 'up' }],
  });
  const [first] = await cluster.masters();
  await first!.client().call('ACL', 'SETUSER', 'default', '-hset');
  const { status, nodes } = await locks.health();
  expect(status).toBe('degraded');
  expect(nodes.filter((node) => node.status === 'down').map(({ node }) => node)).toEqual([
    `127.0.0.1:${String(first!.port)}`,
  ]);
  expect(nodes.filter((node) => node.status === 'up')).toHaveLength(2);
});
