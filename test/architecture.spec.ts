import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const lib = fileURLToPath(new URL('../lib', import.meta.url));

/** What each room may import besides itself. Arrows point one way: nest, service, locks, core, stores. */
const MAY_IMPORT: Record<string, string[]> = {
  // What every room shares: errors, events, options, the clock. They import types at most.
  words: ['stores'],
  stores: ['words'],
  core: ['words', 'stores'],
  locks: ['words', 'core'],
  service: ['words', 'core', 'locks', 'stores', 'nest'],
  nest: ['words', 'service', 'core', 'locks'],
  // Nobody imports it: what it needs is an optional peer.
  health: ['words', 'service', 'nest'],
  testing: ['words', 'service', 'core', 'locks', 'stores', 'nest'],
};
const WORDS = /^lock\.(clock|turn|errors|events|options|health|state|text)\.ts$/;

function roomOf(path: string): string {
  const [first = '', ...rest] = path.split('/');
  if (rest.length > 0) return first;
  return WORDS.test(first) ? 'words' : 'service';
}

const files = readdirSync(lib, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

function importsOf(file: string): string[] {
  const source = readFileSync(join(lib, file), 'utf8');
  return [...source.matchAll(/from '([^']+)'/g)].map(([, from]) => from!);
}

describe('the rooms of lib', () => {
  it.each(files)('%s imports only what its room may', (file) => {
    const room = roomOf(file);
    for (const from of importsOf(file).filter((name) => name.startsWith('.'))) {
      const target = roomOf(relative(lib, join(lib, dirname(file), from.replace(/\.js$/, '.ts'))));
      expect([room, ...(MAY_IMPORT[room] ?? [])]).toContain(target);
    }
  });

  it('only the Redis store knows ioredis, the options excepted, which name its types', () => {
    const knowing = files.filter((file) => importsOf(file).includes('ioredis'));
    for (const file of knowing) expect(file).toMatch(/^stores\/|^lock\.options\.ts$/);
  });

  it('only the health indicator knows Terminus, which not everybody has installed', () => {
    const knowing = files.filter((file) => importsOf(file).includes('@nestjs/terminus'));
    expect(knowing).toEqual(['health/lock-health.indicator.ts']);
  });

  it('stores know nothing of Nest', () => {
    for (const file of files.filter((name) => /^(stores|core|locks)\//.test(name))) {
      expect(importsOf(file).filter((name) => name.startsWith('@nestjs/'))).toEqual([]);
    }
  });

  it('the core reaches stores through the port alone', () => {
    for (const file of files.filter((name) => /^(core|locks)\//.test(name))) {
      for (const from of importsOf(file).filter((name) => name.includes('/stores/'))) {
        expect(from).toMatch(/stores\/(lock-store|releaser)\.js$/);
      }
    }
  });
});
