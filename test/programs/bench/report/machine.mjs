import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';

const here = createRequire(import.meta.url);
const version = (path) => JSON.parse(readFileSync(path, 'utf8')).version;

/** What the figures depend on. */
export function machine() {
  const redis = /v=(\S+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1];
  const { dependencies } = here('../package.json');
  const ours = version(new URL('../../../../node_modules/ioredis/package.json', import.meta.url));
  if (ours !== dependencies.ioredis) {
    throw new Error(
      `This package runs on ioredis ${ours}, its peers on ${dependencies.ioredis}: make them the same`,
    );
  }
  return {
    cores: availableParallelism(),
    redis,
    node: process.versions.node,
    java: java(),
    libraries: { ...dependencies, Redisson: redisson() },
  };
}

/** undefined where there is none, and Redisson was not measured */
function java() {
  const { stderr } = spawnSync('java', ['-version'], { encoding: 'utf8' });
  return /"([\d._]+)"/.exec(stderr ?? '')?.[1];
}

const redisson = () =>
  /<artifactId>redisson<\/artifactId>\s*<version>([^<]+)</.exec(
    readFileSync(new URL('../../../jvm/pom.xml', import.meta.url), 'utf8'),
  )?.[1];
