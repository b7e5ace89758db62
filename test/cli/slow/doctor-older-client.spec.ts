import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { RedisCluster } from '../../support/redis-cluster.js';
import { PROGRAM } from '../command-line.js';

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.start();
}, 60_000);

afterAll(() => cluster.stop());

const moduleOf = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
const RESOLVE = `export const resolve = (name, context, next) =>
  next(name === 'ioredis' ? 'ioredis-5' : name, context);`;
const WITH_IOREDIS_5 = moduleOf(
  `import { register } from 'node:module'; register(${JSON.stringify(moduleOf(RESOLVE))});`,
);

it('doctor looks at the rights of sharded messages with ioredis 5, which settles no SSUBSCRIBE that is MOVED', () => {
  const hosts = cluster.servers.map(({ port }) => `127.0.0.1:${String(port)}`).join();
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', WITH_IOREDIS_5, PROGRAM, 'doctor', '--json', '--cluster', hosts],
    { encoding: 'utf8', timeout: 60_000 },
  );
  expect(stderr).toBe('');
  const { findings } = JSON.parse(stdout) as { findings: { code: string; level: string }[] };
  // One for each master. The lock of the channel belongs to one of them, so that the others answer MOVED.
  expect(findings.filter(({ code }) => code === 'acl').map(({ level }) => level)).toEqual(['ok', 'ok', 'ok']);
});
