import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const lib = fileURLToPath(new URL('../lib', import.meta.url));

/**
 * What each room may import besides itself, types included. Arrows point one way: nest, service, locks, core, port. Core
 * and stores stand side by side on the port.
 */
const MAY_IMPORT: Record<string, string[]> = {
  // What every room shares: errors, events, texts, the clock.
  words: [],
  port: ['words'],
  // The options and the health report name types of the port.
  options: ['words', 'port'],
  stores: ['words', 'port', 'options'],
  core: ['words', 'port', 'options'],
  locks: ['words', 'options', 'core'],
  nest: ['words', 'options', 'core', 'locks', 'service'],
  service: ['words', 'port', 'options', 'core', 'locks', 'stores'],
  module: ['words', 'options', 'service', 'nest'],
  // No room imports these: what they need is installed only by some.
  health: ['words', 'options', 'service', 'nest'],
  otel: ['words', 'service', 'core'],
  cli: ['words', 'port', 'options', 'service', 'core', 'locks', 'stores'],
  board: ['words', 'port', 'options', 'core', 'locks', 'service', 'nest'],
  // For authors of stores.
  store: ['port'],
  testing: ['words', 'port', 'options', 'service', 'core', 'locks', 'stores', 'nest', 'module'],
  index: ['words', 'port', 'options', 'service', 'locks', 'stores', 'nest', 'module'],
};

const ROOMS: [RegExp, string][] = [
  [/^lock\.(asker|clock|runtime|duration|errors|events|state|text|tracing|order|deadlock)\.ts$/, 'words'],
  [/^lock\.(options|health)\.ts$/, 'options'],
  [/^lock\.module\.ts$/, 'module'],
  [/^index\.ts$/, 'index'],
  [/^lock\.[\w.]+\.ts$/, 'service'],
];

function roomOf(file: string): string {
  const [folder = '', ...rest] = file.split('/');
  if (rest.length > 0) return folder;
  return ROOMS.find(([pattern]) => pattern.test(file))?.[1] ?? 'no room';
}

interface Import {
  /** A file of lib, or the name of a package. */
  readonly target: string;
  /** Gone in what is built. */
  readonly isType: boolean;
}

type Graph = ReadonlyMap<string, readonly Import[]>;

function importsOf(file: string, source: string): Import[] {
  const clauses = source.matchAll(
    /^(?:import|export) (?!const|function|class)([^;']*?)(?:from )?'([^']+)'/gm,
  );
  return [...clauses].map(([, clause = '', from = '']) => ({
    target: from.startsWith('.')
      ? posix.join(posix.dirname(file), from).replace(/\.js$/, '.ts')
      : from.replace(/^((?:@[^/]+\/)?[^/]+).*$/, '$1'),
    isType: clause.startsWith('type '),
  }));
}

const files = readdirSync(lib, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'));
const graph: Graph = new Map(
  files.map((file) => [file, importsOf(file, readFileSync(join(lib, file), 'utf8'))]),
);

/** All that is loaded with a file, itself included: what it imports, what that imports, and so on. */
function loadedWith(file: string, imports: Graph): ReadonlySet<string> {
  const loaded = new Set<string>();
  const visit = (target: string) => {
    if (loaded.has(target)) return;
    loaded.add(target);
    for (const { target: next, isType } of imports.get(target) ?? []) if (!isType) visit(next);
  };
  visit(file);
  return loaded;
}

/** Chains of imports that come back to where they begin, types included. */
function circlesOf(imports: Graph): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]) => {
    const at = way.indexOf(file);
    if (at >= 0) circles.push([...way.slice(at), file]);
    if (at >= 0 || done.has(file)) return;
    for (const { target } of imports.get(file) ?? []) visit(target, [...way, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return circles;
}

const inRooms = (...rooms: string[]) => files.filter((file) => rooms.includes(roomOf(file)));
const loading = (name: string) => files.filter((file) => loadedWith(file, graph).has(name));

describe('the rooms of lib', () => {
  it.each(files)('%s imports only what its room may', (file) => {
    const room = roomOf(file);
    const rooms = (graph.get(file) ?? []).filter(({ target }) => graph.has(target));
    for (const { target } of rooms) expect([room, ...(MAY_IMPORT[room] ?? [])]).toContain(roomOf(target));
  });

  it('every import leads to a file or to a package', () => {
    const targets = [...graph.values()].flat().map(({ target }) => target);
    expect(targets.filter((target) => target.endsWith('.ts') && !graph.has(target))).toEqual([]);
  });

  it('arrows between rooms make no circle', () => {
    const rooms = Object.entries(MAY_IMPORT).map(
      ([room, may]) => [room, may.map((target) => ({ target, isType: false }))] as const,
    );
    expect(circlesOf(new Map(rooms))).toEqual([]);
  });

  it('no file imports itself over others', () => {
    expect(circlesOf(graph)).toEqual([]);
  });
});

describe('what is loaded with a file, over all that it imports', () => {
  it('core and stores do not load each other', () => {
    for (const file of inRooms('core', 'locks')) {
      expect([...loadedWith(file, graph)].filter((target) => roomOf(target) === 'stores')).toEqual([]);
    }
    for (const file of inRooms('stores', 'port', 'words', 'options')) {
      const rooms = [...loadedWith(file, graph)].map(roomOf);
      expect(rooms.filter((room) => ['core', 'locks', 'service', 'nest'].includes(room))).toEqual([]);
    }
  });

  it('a store loads no other store, but a quorum is made of Redis servers', () => {
    for (const file of files.filter((name) => /^stores\/\w+\//.test(name))) {
      const own = posix.dirname(file);
      const others = [...loadedWith(file, graph)].filter((name) => name.startsWith('stores/'));
      expect(others.filter((name) => posix.dirname(name) !== own)).toEqual([]);
    }
  });

  it('ioredis comes with the Redis store alone', () => {
    const below = ['words', 'port', 'options', 'core', 'locks'];
    expect(loading('ioredis').filter((file) => below.includes(roomOf(file)))).toEqual([]);
    const naming = files.filter((file) => graph.get(file)?.some(({ target }) => target === 'ioredis'));
    // The options and what asks servers one by one name its types.
    for (const file of naming)
      expect(file).toMatch(/^stores\/(redis\/|create-store\.ts)|^lock\.options\.ts$|^cli\/doctor\//);
  });

  it('Terminus, which only some have installed, comes with the health indicators alone', () => {
    expect(loading('@nestjs/terminus').sort()).toEqual([
      'health/election-health.indicator.ts',
      'health/index.ts',
      'health/lock-health.indicator.ts',
    ]);
  });

  it('OpenTelemetry, which only some have installed, comes with the telemetry alone', () => {
    const naming = files.filter((file) =>
      graph.get(file)?.some(({ target }) => target.startsWith('@opentelemetry/')),
    );
    expect(naming.length).toBeGreaterThan(0);
    expect(new Set(naming.map(roomOf))).toEqual(new Set(['otel']));
    const outside = files.filter((file) => roomOf(file) !== 'otel');
    expect(
      outside.filter((file) => graph.get(file)?.some(({ target }) => target.startsWith('otel/'))),
    ).toEqual([]);
  });

  it('the command line begins without Nest and ioredis, and no other room has it', () => {
    const loaded = [...loadedWith('cli/main.ts', graph)];
    expect(loaded.filter((target) => !target.startsWith('cli/') && !target.startsWith('node:'))).toEqual([]);
    const naming = files.filter((file) => graph.get(file)?.some(({ target }) => target.startsWith('cli/')));
    expect(new Set(naming.map(roomOf))).toEqual(new Set(['cli']));
  });

  it('stores, core and locks load nothing of Nest, but what makes Nest answer an error', () => {
    const withoutErrors = new Map([...graph].filter(([file]) => file !== 'lock.errors.ts'));
    for (const file of inRooms('words', 'port', 'stores', 'core', 'locks')) {
      const loaded = [...loadedWith(file, withoutErrors)];
      expect([file, loaded.filter((target) => target.startsWith('@nestjs/'))]).toEqual([file, []]);
    }
    for (const file of inRooms('port', 'stores', 'core', 'locks')) {
      expect(graph.get(file)?.filter(({ target }) => target.startsWith('@nestjs/'))).toEqual([]);
    }
  });
});

/** What decides, besides the store, in which order and when things happen. */
const RUNTIME =
  /\b(?:Date\.now|new Date\(\)|performance\.|setTimeout|setInterval|setImmediate|clear(?:Timeout|Interval|Immediate)|queueMicrotask|nextTick|hrtime|uptime\(|Math\.random|random(?:UUID|Bytes|Int)|getRandomValues|AbortSignal\.timeout|timers\/promises|Atomics\.wait)/;

const SEAM = 'lock.runtime.ts';

/** The lines of code, comments left out, that name it. */
const takingFromRuntime = (source: string): string[] =>
  source
    .split('\n')
    .filter(
      (line) =>
        !/^\s*(?:\*|\/[/*])/.test(line) &&
        RUNTIME.test(line.replace(/ \/\/ .*$/, '').replace(/'[^']* [^']*'/g, '')),
    );

describe('time, timers and chance', () => {
  it.each(inRooms('words', 'port', 'core', 'locks', 'stores').filter((file) => file !== SEAM))(
    '%s takes them from the seam alone',
    (file) => {
      expect(takingFromRuntime(readFileSync(join(lib, file), 'utf8'))).toEqual([]);
    },
  );

  it('the seam has them all', () => {
    expect(takingFromRuntime(readFileSync(join(lib, SEAM), 'utf8')).length).toBeGreaterThan(10);
    expect(loadedWith(SEAM, graph)).toEqual(new Set([SEAM, 'node:crypto', 'node:os', 'node:timers']));
  });
});

describe('the checks themselves', () => {
  it('find what code takes from the runtime, and no words about it', () => {
    const named = ['const at = Date.now();', "import { setTimeout as sleep } from 'node:timers/promises';"];
    const words = [
      '// Fake timers delay queueMicrotask',
      ' * `performance.now()` stands still',
      "  throw new Error('must replace performance.now() too');",
    ];
    expect(takingFromRuntime([...named, ...words].join('\n'))).toEqual(named);
  });

  const value = (target: string): Import => ({ target, isType: false });
  const type = (target: string): Import => ({ target, isType: true });
  const small: Graph = new Map([
    ['a.ts', [value('b.ts')]],
    ['b.ts', [value('c.ts'), type('d.ts')]],
    ['c.ts', [type('a.ts'), value('ioredis')]],
    ['d.ts', []],
  ]);

  it('find what is imported over others', () => {
    expect([...loadedWith('a.ts', small)]).toEqual(['a.ts', 'b.ts', 'c.ts', 'ioredis']);
  });

  it('find a circle of three files, one arrow of it a type', () => {
    expect(circlesOf(small)).toEqual([['a.ts', 'b.ts', 'c.ts', 'a.ts']]);
  });

  it('read imports of each form', () => {
    const source = [
      "import type { A } from './a.js';",
      "import { b,\n  type B } from '../b.js';",
      "export * from './c.js';",
      "export type { D } from './d.js';",
      "import 'reflect-metadata';",
      "import type { ClusterNode } from '@nestjs/common/internal';",
    ].join('\n');
    expect(importsOf('x/y.ts', source)).toEqual([
      type('x/a.ts'),
      value('b.ts'),
      value('x/c.ts'),
      type('x/d.ts'),
      value('reflect-metadata'),
      type('@nestjs/common'),
    ]);
  });
});
