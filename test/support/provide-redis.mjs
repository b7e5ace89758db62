import { spawnSync } from 'node:child_process';

const INSTALL = {
  'apt-get': 'apt-get update && apt-get install --yes --no-install-recommends redis-server',
  apk: 'apk add redis',
  dnf: 'dnf install --assumeyes redis || dnf install --assumeyes valkey',
};

/**
 * Many test files need a Redis process that they can kill, so where there is no program and the package manager may be
 * asked, one is installed. If that fails, the tests say what they lack.
 */
export function provideRedis() {
  const { REDIS_URL, LOCK_TEST_REDIS } = process.env;
  if (REDIS_URL !== undefined || LOCK_TEST_REDIS === 'container') return;
  if (process.getuid?.() !== 0 || isOnPath('redis-server') || isOnPath('valkey-server')) return;
  const manager = Object.keys(INSTALL).find(isOnPath);
  if (manager === undefined) return;
  console.log(`Neither redis-server nor valkey-server is on the PATH: installing one with ${manager}.`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('sh', ['-c', INSTALL[manager]], { stdio: ['ignore', 'inherit', 'inherit'], env });
}

const isOnPath = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
