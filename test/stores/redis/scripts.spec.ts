import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as sources from '../../../lib/stores/redis/scripts.generated.js';
import { COMMAND } from '../../../lib/stores/redis/connection/command-refused.js';
import * as scripts from '../../../lib/stores/redis/commands/script.js';
import { RedisServer } from '../../support/redis-server.js';

const folder = fileURLToPath(new URL('../../../lib/stores/redis/scripts/', import.meta.url));
const files = readdirSync(folder).filter((file) => !file.endsWith('.include.lua'));
const camelCase = (file: string) =>
  file.replace('.lua', '').replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(() => server.stop());

describe('the Lua scripts', () => {
  it.each(files)('%s compiles, and is known by the digest that we compute', async (file) => {
    const { source, sha } = scripts[camelCase(file) as keyof typeof scripts];
    expect(await server.client().script('LOAD', source)).toBe(sha);
  });

  it.each(files)('%s says what its keys, arguments and replies are', (file) => {
    const [header = ''] = readFileSync(folder + file, 'utf8').split('\n\n');
    expect(header).toMatch(/^-- KEYS/m);
    expect(header).toMatch(/^-- ARGV/m);
    expect(header).toMatch(/^-- Returns/m);
  });

  it.each(files)('%s names one command a line at most: a refusal says only which line it was', (file) => {
    const { source } = scripts[camelCase(file) as keyof typeof scripts];
    const commands = new RegExp(COMMAND, 'g');
    expect(source.split('\n').filter((line) => (line.match(commands)?.length ?? 0) > 1)).toEqual([]);
  });

  it('are all in the build', () => {
    expect(Object.keys(sources).sort()).toEqual(files.map(camelCase).sort());
  });
});
