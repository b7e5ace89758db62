import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { rightFindings } from '../../../lib/cli/doctor/right-findings.js';
import { CLUSTER_RIGHTS, type Right, RIGHTS, SHARDED_RIGHTS } from '../../../lib/cli/doctor/rights.js';
import { stateOf } from '../../../lib/module/service-state.js';
import { CLUSTER_PRIVILEGES, createLeastUser, LEAST_PRIVILEGES } from '../../support/acl.js';
import { lockKeys } from '../../support/keys.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { call } from '../command-line.js';
import { serverOfAll } from '../../support/test-servers.js';

const environment = TestEnvironment.ofAll();
const server = serverOfAll({ args: ['--appendonly', 'yes'] });

interface Report {
  status: string;
  versions: object;
  nodes: { node: string; latency: object | null }[];
  findings: { level: string; code: string; node?: string; message: string; cure?: string }[];
}

async function report(...args: string[]): Promise<Report & { code: number | null }> {
  const { code, stdout } = await call(['doctor', '--json', '--timeout', '60s', ...args]);
  return { code, ...(JSON.parse(stdout) as Report) };
}

/** Without the time of a PING, which a busy machine makes long. */
const troubles = ({ findings }: Report) =>
  findings.filter(({ code, level }) => level !== 'ok' && code !== 'latency');
const withUser = (name: string) => server.url.replace('//', `//${name}:word@`);

describe('doctor', () => {
  it('finds nothing wrong where nothing is, and leaves nothing behind', async () => {
    const { code, stdout, stderr } = await call(['doctor', '--url', server.url, '--timeout', '60s']);
    const isSlow = /^ {2}warning {2}PING takes /m.test(stdout);
    expect([code, stderr]).toEqual([isSlow ? 1 : 0, '']);
    expect(stdout).toMatch(
      /^nestjs-distributed-lock \S+, Node\.js \S+, ioredis \S+: up\n\n127\.0\.0\.1:\d+\n/,
    );
    expect(stdout.match(/^ {2}(?:ok {7}|warning {2}(?=PING))/gm)).toHaveLength(9);
    expect(await server.client().keys('*')).toEqual([]);
  });

  it('says what it has found as JSON', async () => {
    const { findings, nodes, ...rest } = await report('--url', server.url);
    const isSlow = findings.some(({ code, level }) => code === 'latency' && level === 'warning');
    expect(rest).toEqual({
      code: isSlow ? 1 : 0,
      status: 'up',
      versions: { package: expect.any(String), node: process.versions.node, ioredis: expect.any(String) },
    });
    expect(nodes).toMatchObject([
      { latency: { median: expect.any(Number), p99: expect.any(Number), count: 100 }, role: 'master' },
    ]);
    expect(findings.map(({ code }) => code)).toEqual([
      'state',
      'version',
      'latency',
      'clock',
      'persistence',
      'replication',
      'eviction-policy',
      'acl',
      'deadlock',
    ]);
  });

  it('warns with exit code 1, and each warning has a cure', async () => {
    const risky = await environment.server({
      args: ['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'],
    });
    const found = await report('--url', risky.url);
    expect(found.code).toBe(1);
    expect(troubles(found)).toEqual([
      {
        level: 'warning',
        code: 'persistence',
        node: expect.any(String),
        message: expect.stringContaining('appendonly no'),
        cure: expect.stringContaining('appendonly'),
      },
      {
        level: 'warning',
        code: 'eviction-policy',
        node: expect.any(String),
        message: expect.stringMatching(/^127.*allkeys-lru\), locks that are held included$/),
        cure: expect.stringMatching(/^Set maxmemory-policy to noeviction/),
      },
    ]);
  });

  it('finds errors with exit code 2: a server that takes no locks, a node that is away', async () => {
    const [replica, one, two, three] = await Promise.all([
      environment.server({ args: ['--replicaof', '127.0.0.1', String(server.port)] }),
      environment.server(),
      environment.server(),
      environment.server(),
    ]);
    const ofReplica = await report('--url', replica.url);
    expect(ofReplica).toMatchObject({ code: 2, status: 'down' });
    expect(troubles(ofReplica).map(({ code }) => code)).toEqual(expect.arrayContaining(['state', 'replica']));
    const nodes = [one.url, two.url, three.url];
    // Nodes that have just started vote from the first lock on.
    await environment.service({ nodes }).acquire('name', { leaseTime: 1_000 });
    await three.kill();
    const ofQuorum = await report('--nodes', nodes.join());
    expect(ofQuorum).toMatchObject({ code: 2, status: 'degraded' });
    expect(troubles(ofQuorum).map(({ code }) => code)).not.toContain('info');
    expect(ofQuorum.findings).toContainEqual({
      level: 'error',
      code: 'state',
      node: `127.0.0.1:${String(three.port)}`,
      message: expect.stringMatching(/^down: /),
      cure: expect.any(String),
    });
    expect(ofQuorum.findings).toContainEqual(expect.objectContaining({ level: 'ok', code: 'clocks' }));
  });
});

describe('The rights that doctor looks for', () => {
  const page = readFileSync(new URL('../../../docs/guide/production.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| (`.*`) +\| (.*?) +\|$/gm)].map(([, of = '', without = '']) => ({
    of: [...of.matchAll(/`([^`]+)`/g)].map(([, right = '']) => right.replace('\\|', '|')),
    without,
  }));
  const textOf = (rights: readonly Right[]) => rights.map(({ of, without }) => ({ of, without }));
  const named = (rights: readonly Right[]) =>
    rights.flatMap(({ of }) =>
      of.map((right) => right.replace(/^(?=[a-z|]+$)/, '+').replace(/^(?=.*(?:channel:|sharding))/, '&')),
    );

  it('are those of the tables of the guide, with the same words', () => {
    const untried = ['wait', 'select'];
    expect(rows.filter(({ of }) => !of.some((right) => untried.includes(right)))).toEqual(
      textOf([...RIGHTS, ...CLUSTER_RIGHTS, ...SHARDED_RIGHTS]),
    );
  });

  it('are those of the rules of the guide', () => {
    expect(new Set(named(RIGHTS))).toEqual(new Set(LEAST_PRIVILEGES));
    expect(new Set(named([...CLUSTER_RIGHTS, ...SHARDED_RIGHTS]))).toEqual(
      new Set(CLUSTER_PRIVILEGES.filter((rule) => !/^\s*$/.test(rule))),
    );
  });

  it('are named one by one where a user lacks them, with the rule that gives them', async () => {
    const redis = server.client();
    await createLeastUser(redis, 'user');
    const service = environment.service({ connection: withUser('user') });
    const [connection] = (await stateOf(service)?.servers()) ?? [];
    const find = () => rightFindings(connection!, { keyPrefix: 'lock:', isCluster: false });
    expect(await find()).toEqual([expect.objectContaining({ level: 'ok' })]);
    for (const rule of LEAST_PRIVILEGES) {
      const less = LEAST_PRIVILEGES.filter((other) => other !== rule);
      if (rule.startsWith('+')) await redis.acl('SETUSER', 'user', `-${rule.slice(1)}`);
      else
        await redis.acl(
          'SETUSER',
          'user',
          'resetchannels',
          'resetkeys',
          ...less.filter((one) => !one.startsWith('+')),
        );
      const found = await find();
      await redis.acl('SETUSER', 'user', ...LEAST_PRIVILEGES);
      const right = rule.replace(/^[+&]/, '');
      const row = RIGHTS.find(({ of }) => of.includes(right));
      expect([rule, found]).toEqual([
        rule,
        [
          expect.objectContaining({
            level: row?.level,
            message: expect.stringContaining(`user may not use ${right}: `),
            cure: `ACL SETUSER user ${rule}`,
          }),
        ],
      ]);
    }
    expect(await lockKeys(redis)).toEqual([]);
  });

  it('to the keys are those to read and to write them', async () => {
    const redis = server.client();
    await createLeastUser(redis, 'reader');
    await redis.acl('SETUSER', 'reader', 'resetkeys', '%R~lock:*');
    const found = troubles(await report('--url', withUser('reader')));
    expect(found.filter(({ code }) => code === 'acl')).toEqual([
      expect.objectContaining({ level: 'error', cure: 'ACL SETUSER reader ~lock:*' }),
    ]);
  });

  it('are asked of each master of a cluster, by the prefix of the application', async () => {
    const cluster = await RedisCluster.start();
    environment.add(() => cluster.stop());
    const hosts = cluster.servers.map(({ port }) => `127.0.0.1:${String(port)}`).join();
    // A replica may still be on its way to its master.
    const unsafe = troubles(await report('--cluster', hosts)).filter(({ code }) => code !== 'replication');
    expect(unsafe.map(({ code }) => code)).toEqual(['persistence', 'persistence', 'persistence']);
    const less = [...LEAST_PRIVILEGES, ...CLUSTER_PRIVILEGES].filter((rule) => !/ssubscribe|myid/.test(rule));
    for (const node of cluster.servers) await createLeastUser(node.client(), 'user', less);
    const [first = '', ...others] = hosts.split(',');
    const found = await report('--cluster', [`redis://user:word@${first}`, ...others].join());
    expect(found.code).toBe(2);
    const lacks = found.findings.filter(({ code }) => code === 'acl').map(({ cure }) => cure);
    expect(new Set(lacks)).toEqual(
      new Set(['ACL SETUSER user +cluster|myid', 'ACL SETUSER user +ssubscribe']),
    );
    expect(lacks).toHaveLength(6);
    const other = await report('--prefix', 'app:', '--url', withUser('user'));
    expect(other.findings).toContainEqual(expect.objectContaining({ cure: 'ACL SETUSER user ~app:*' }));
  });
});
