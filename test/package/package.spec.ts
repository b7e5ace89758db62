import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { startRedis, type TestRedis } from '../support/redis.js';
import { type Packed, root, run, Scratch } from './scratch.js';

const NODE = process.execPath;
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, unknown>;
  engines: { node: string };
  peerDependencies: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
};
const subpaths = Object.keys(manifest.exports).filter((subpath) => subpath !== './package.json');

/** The optional peers that a subpath is about. */
const OPTIONAL: Readonly<Record<string, readonly string[]>> = {
  './health': ['@nestjs/terminus'],
  './otel': ['@opentelemetry/api'],
};

interface Application {
  project: string;
  runners: [name: string, ...args: string[]][];
  resolutions: [module: string, moduleResolution: string, ...more: string[]][];
}

const applications: Application[] = [
  {
    project: 'nest-11',
    runners: [['Jest', 'node_modules/jest/bin/jest.js', 'dist']],
    resolutions: [
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
      ['esnext', 'node10', '--ignoreDeprecations', '6.0'],
    ],
  },
  {
    project: 'nest-12',
    runners: [
      ['Jest', '--experimental-vm-modules', 'node_modules/jest/bin/jest.js', 'dist'],
      ['Vitest', 'node_modules/vitest/vitest.mjs', 'run'],
    ],
    resolutions: [
      ['node16', 'node16'],
      ['esnext', 'bundler'],
    ],
  },
];

let scratch: Scratch;
let packed: Packed;
let redis: TestRedis;

beforeAll(async () => {
  [scratch, redis] = await Promise.all([Scratch.make(), startRedis()]);
  packed = await scratch.pack();
  await Promise.all([
    ...applications.map(({ project }) => scratch.install(project)),
    scratch.install('oldest', ['oldest']),
  ]);
});

afterAll(async () => {
  await redis.stop();
  await scratch.remove();
});

describe('the tarball', () => {
  const paths = () => packed.files.map((file) => file.path);

  const read = (path: string) => readFileSync(join(scratch.contents, path), 'utf8');

  it('is small: 2.5 MB in 500 files at most', () => {
    const kB = (bytes: number) => `${String(Math.ceil(bytes / 1_000))} kB`;
    const { size, unpackedSize, files } = packed;
    process.stdout.write(
      `The package: ${kB(size)} packed, ${kB(unpackedSize)} unpacked, ${String(files.length)} files\n`,
    );
    expect(unpackedSize).toBeLessThanOrEqual(2_500_000);
    expect(files.length).toBeLessThanOrEqual(500);
  });

  it('holds code, declarations and pages for users, and nothing else', () => {
    const pages = /^(LICENSE|(README|SECURITY)\.md|docs\/(?!api\/|design\/|releasing|benchmark)[^.]*\.md)$/;
    expect(paths().filter((path) => pages.test(path)).length).toBeGreaterThan(10);
    // For old resolution there is a package.json per subpath.
    const rest = /^dist\/.*\.(d\.ts|js|cjs)$|^docs\/observability\/|^((dist\/cjs|\w+)\/)?package\.json$/;
    expect(paths().filter((path) => !pages.test(path) && !rest.test(path))).toEqual([]);
    expect(paths().filter((path) => /\.(spec|test|test-d)\.|sample-app|__tests__/.test(path))).toEqual([]);
  });

  it('has a manifest for users: peers, and no scripts that an installation could run', () => {
    const published = JSON.parse(read('package.json')) as typeof manifest;
    const { exports, engines, peerDependencies, peerDependenciesMeta } = manifest;
    expect(published).toMatchObject({ exports, engines, peerDependencies, peerDependenciesMeta });
    for (const field of ['scripts', 'private', 'dependencies', 'devDependencies', 'overrides', 'workspaces'])
      expect(published).not.toHaveProperty(field);
  });

  it('has comments in its declarations and none in its code, which refers to no source map', () => {
    for (const path of paths().filter((file) => /\.c?js$/.test(file)))
      expect([path, /^\s*(\/\*|\/\/)|sourceMappingURL/m.exec(read(path))?.[0]]).toEqual([path, undefined]);
    for (const path of ['dist/module/lock-service.d.ts', 'dist/cjs/module/lock-service.d.ts'])
      expect(read(path)).toContain('* @throws LockTimeoutError');
  });

  it('keeps the names of classes, which users see in errors and Nest in its tokens', () => {
    for (const path of paths().filter((file) => file.endsWith('.js')))
      expect([path, read(path).match(/\bclass \w+(\d+ \{|\$)/g)]).toEqual([path, null]);
  });

  it('passes publint', async () => {
    expect(await run(root, 'node_modules/.bin/publint', [scratch.tarball, '--strict'])).toContain('All good');
  });

  it('has types that resolve in every way (attw)', async () => {
    const report = await run(root, 'node_modules/.bin/attw', [scratch.tarball, '--format', 'json']);
    const { analysis } = JSON.parse(report) as {
      analysis: { problems: unknown[]; entrypoints: Record<string, unknown> };
    };
    expect(analysis.problems).toEqual([]);
    expect(Object.keys(analysis.entrypoints)).toEqual(expect.arrayContaining(subpaths));
  });

  it.each(subpaths)('names no optional peer in the types of "%s"', (subpath) => {
    const peers = Object.keys(manifest.peerDependencies).filter(
      (peer) => manifest.peerDependenciesMeta?.[peer]?.optional !== true,
    );
    const allowed = [...peers, ...(OPTIONAL[subpath] ?? [])];
    for (const build of ['dist', 'dist/cjs']) {
      const imported = packagesNamedFrom(join(scratch.contents, build, subpath, 'index.d.ts'));
      // The port names no package at all.
      expect(imported.size > 0).toBe(subpath !== './store');
      for (const name of imported) expect([...allowed, 'node']).toContain(name);
    }
  });
});

it('the public surface is the one of test/package/api (`npm run api` after a change that is meant)', async () => {
  await run(root, NODE, ['scripts/api-report.mjs', '--check']);
});

describe.each(applications)('an application ($project)', ({ project, resolutions, runners }) => {
  let directory: string;
  const node = (...args: string[]) => run(directory, NODE, args, { REDIS_URL: redis.url });
  const tsc = (...args: string[]) => node('node_modules/typescript/bin/tsc', '-p', '.', ...args);

  beforeAll(async () => {
    directory = scratch.directoryOf(project);
    await tsc();
  });

  it('boots, locks on Redis and answers', async () => {
    await node('dist/main.js');
  });

  it(`passes its tests with ${runners.map(([runner]) => runner).join(' and ')}`, async () => {
    // They mostly wait.
    await Promise.all(runners.map(([, ...args]) => node(...args)));
  });

  it('makes spans and metrics of its locks', async () => {
    await node('dist/telemetry.js');
  });

  it('has the command line beside it', async () => {
    const program = join(directory, 'node_modules/.bin/nestjs-distributed-lock');
    const script = 'echo "$LOCK_NAME"; "$0" show "$LOCK_NAME" --json';
    const output = await run(directory, program, ['run', project, '--', 'sh', '-c', script, program], {
      REDIS_URL: redis.url,
    });
    const [name, lock = ''] = output.split('\n');
    expect([name, JSON.parse(lock)]).toEqual([project, expect.objectContaining({ name, kind: 'lock' })]);
  });

  it('gets the package by a plain require', async () => {
    await node('require.cjs');
  });

  it('may load both builds: one scope, one service, guards that agree, and each lock measured once', async () => {
    await node('dist/copies.mjs');
  });

  it.each(resolutions)('compiles as %s with %s resolution', async (module, moduleResolution, ...more) => {
    await tsc('--noEmit', '--module', module, '--moduleResolution', moduleResolution, ...more);
  });
});

describe('the oldest of everything', () => {
  const { dependencies } = JSON.parse(
    readFileSync(join(root, 'test/package/oldest/package.json'), 'utf8'),
  ) as { dependencies: Record<string, string> };

  it('is what engines and peers say', () => {
    const least = (range: string) => /\d+\.\d+\.\d+/.exec(range)?.[0];
    const ranges = Object.entries({ node: manifest.engines.node, ...manifest.peerDependencies });
    const oldest = ranges.filter(([name]) => manifest.peerDependenciesMeta?.[name]?.optional !== true);
    expect(dependencies).toEqual(Object.fromEntries(oldest.map(([name, range]) => [name, least(range)])));
  });

  it('locks on Redis, is refused a busy lock, gives a wait up, disposes', async () => {
    const directory = scratch.directoryOf('oldest');
    await run(directory, 'node_modules/node/bin/node', ['main.mjs', dependencies.node ?? '', redis.url]);
  });
});

/** The packages that a declaration file names, and all that it imports of ours. */
function packagesNamedFrom(file: string, seen = new Set<string>()): Set<string> {
  const named = new Set<string>();
  if (seen.has(file)) return named;
  seen.add(file);
  for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(
    /(?:from |import |import\()['"]([^'"]+)['"]/g,
  )) {
    if (from.startsWith('.')) {
      const target = resolve(dirname(file), from.replace(/\.js$/, '.d.ts'));
      expect(existsSync(target)).toBe(true);
      for (const name of packagesNamedFrom(target, seen)) named.add(name);
    } else {
      named.add(/^(@[^/]+\/)?[^/:]+/.exec(from)?.[0] ?? from);
    }
  }
  return named;
}
