import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { DynamicModule, INestApplication, InjectionToken, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockModule, LockService } from 'nestjs-distributed-lock';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { Drive } from '../drives.js';
import type * as Preamble from '../preamble.js';
import { missing as lacking } from '../../fencing/database-server.js';
import { pagePaths, readPage } from '../markdown.js';
import { typeErrors, writePrograms, type Program } from '../program.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const pages = pagePaths(root).map((path) => readPage(root, path));
const blocks = pages.flatMap((page) => page.blocks);
const inLanguage = (language: string) => blocks.filter((block) => block.language === language);

describe('What the pages say in TypeScript', () => {
  const modules = jest.spyOn(LockModule, 'forRoot');
  const asyncModules = jest.spyOn(LockModule, 'forRootAsync');
  let preamble: typeof Preamble;
  let drives: Readonly<Record<string, readonly Drive[]>>;
  let programs: ReadonlyMap<string, Program>;
  let errors: ReadonlyMap<string, readonly string[]>;
  let apps: INestApplication[] = [];

  beforeAll(async () => {
    preamble = await import('../preamble.js');
    drives = (await import('../drives.js')).DRIVES;
    const moved = inLanguage('ts').map((block) => ({ ...block, code: preamble.servers.move(block.code) }));
    programs = writePrograms(moved, Object.keys(preamble));
    errors = typeErrors(programs);
  });

  afterEach(async () => {
    await Promise.all(apps.map((app) => app.close()));
    apps = [];
    modules.mockClear();
    asyncModules.mockClear();
    await Promise.all(preamble.locks.leases().map((lease) => lease.release()));
    await preamble.redis.flushdb();
  });

  afterAll(async () => {
    await preamble.locks.onApplicationShutdown();
    preamble.redis.disconnect();
    await preamble.servers.close();
    if (preamble.dataSource.isInitialized) await preamble.dataSource.destroy();
    await preamble.database?.stop();
  });

  async function boot(imports: (DynamicModule | Type)[], parts: Type[] = []): Promise<INestApplication> {
    const module = await Test.createTestingModule({
      imports,
      controllers: parts.filter(isController),
      providers: parts.filter((part) => !isController(part)),
    }).compile();
    const app = module.createNestApplication();
    app.useLogger(false);
    apps.push(app);
    await app.listen(0, '127.0.0.1');
    return app;
  }

  /** Each LockModule gives out locks, wherever it leads. */
  async function lockWith(module: DynamicModule): Promise<void> {
    const [token] = module.exports as [InjectionToken<LockService>];
    const service = (await boot([module])).get(token);
    await service.using('any', (lease) => {
      lease.assertHeld();
    });
  }

  /** Each class does what `drives.ts` does with it, under the locks that it says. */
  async function drive(part: Type, app: INestApplication): Promise<void> {
    const taken: string[] = [];
    app.get(LockService).events$.subscribe((event) => {
      if (event.type === 'acquired') taken.push(event.name);
    });
    const url = await app.getUrl();
    for (const [call, names] of drives[part.name] ?? [missing(part)]) {
      taken.length = 0;
      await call(app.get(part), url);
      if (names !== 'any') expect(taken.sort()).toEqual(names);
    }
  }

  const needsPostgres = (code: string) =>
    lacking.postgres !== undefined && /\bdataSource\b|DataSource/.test(code);
  const [left, run] = [true, false].map((isLeft) =>
    inLanguage('ts').filter(({ code }) => needsPostgres(code) === isLeft),
  );
  for (const { title } of left ?? [])
    it.skip(`${title} is true (left out: ${lacking.postgres ?? ''})`, () => undefined);

  it.each((run ?? []).map(({ title }) => title))('%s is true', async (title) => {
    expect(errors.get(title)).toEqual([]);
    const exported = (await import(programs.get(title)?.file ?? '')) as Record<string, unknown>;
    expect(preamble.locks.leases()).toEqual([]);

    const made = [...modules.mock.results, ...asyncModules.mock.results].map(
      ({ value }) => value as DynamicModule,
    );
    for (const module of made) await lockWith(module);

    const classes = Object.values(exported).filter(isClass);
    const roots: (DynamicModule | Type)[] = classes.filter(isModule);
    const parts = classes.filter((part) => !isModule(part));
    const standalone = roots.length === 0;
    if (made.length === 0) roots.push(LockModule.forRoot({ connection: preamble.servers.url }));
    for (const part of parts) await drive(part, await boot(roots, standalone ? parts : []));
  });
});

describe('What the pages say in other languages', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
  const commands = inLanguage('sh').flatMap(({ title, code }) =>
    commandsOf(code).map((command) => ({ title, command })),
  );

  it.each(commands)('$title: $command can be run', ({ command }) => {
    const [program = '', verb = '', script = ''] = command.split(/\s+/);
    expect(spawnSync('sh', ['-c', `command -v ${program}`]).status).toBe(0);
    if (program !== 'npm') return;
    if (verb === 'run') expect(Object.keys(scripts)).toContain(script);
    else if (verb === 'start' || verb === 'test') expect(Object.keys(scripts)).toContain(verb);
    else expect(['ci', 'install']).toContain(verb);
  });

  it('JSON and YAML can be parsed, and no language goes unchecked', () => {
    for (const { code } of inLanguage('json')) JSON.parse(code);
    for (const { code } of inLanguage('yaml')) parse(code);
    // Programs in `js` are run by test/fencing/slow/servers-recipes.spec.ts.
    const known = ['ts', 'js', 'sh', 'json', 'yaml', 'text', 'mermaid'];
    expect(blocks.filter(({ language }) => !known.includes(language))).toEqual([]);
  });
});

describe('Links of the pages', () => {
  const links = pages.flatMap(({ path, links }) => links.map((target) => ({ from: path, target })));

  it.each(links.filter(({ target }) => !/^https?:/.test(target)))(
    '$from: $target leads somewhere',
    (link) => {
      const [target = '', anchor] = link.target.split('#');
      const path = target === '' ? link.from : join(dirname(link.from), target);
      expect([path, existsSync(join(root, path))]).toEqual([path, true]);
      if (anchor !== undefined) expect(readPage(root, path).anchors).toContain(anchor);
    },
  );

  it('lead from README to each page', () => {
    const found = new Set(['README.md']);
    for (const from of found) {
      const page = pages.find(({ path }) => path === from);
      for (const target of page?.links ?? []) found.add(join(dirname(from), target.split('#')[0] ?? ''));
    }
    expect(pages.map(({ path }) => path).filter((path) => !found.has(path))).toEqual([]);
  });
});

const isController = (part: Type): boolean => Reflect.hasMetadata('path', part);
const isModule = (part: Type): boolean => Reflect.hasMetadata('imports', part);

function isClass(value: unknown): value is Type {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));
}

function missing(part: Type): never {
  throw new Error(`drives.ts does nothing with ${part.name}`);
}

function commandsOf(code: string): string[] {
  return code
    .split('\n')
    .flatMap((line) => line.replace(/(^|\s)#.*/, '').split('&&'))
    .map((command) => command.trim())
    .filter((command) => command !== '');
}
