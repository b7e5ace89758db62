import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';

const PACKAGE = fileURLToPath(new URL('../../..', import.meta.url));

/** Makes an id of its own while the snapshot is built. */
const APPLICATION = `
const { createRequire } = require('node:module');
const { startupSnapshot } = require('node:v8');
require('node:crypto').randomUUID();
startupSnapshot.setDeserializeMainFunction(async () => {
  const { LockService } = createRequire(${JSON.stringify(PACKAGE)})('./dist/cjs/index.js');
  const locks = new LockService({ store: 'memory' });
  console.log((await locks.acquire('a')).owner);
  await locks.onApplicationShutdown();
});`;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'locks-snapshot-'));
});

afterAll(() => rm(folder, { recursive: true }));

const node = async (...args: string[]) =>
  (await promisify(execFile)(process.execPath, args, { cwd: folder, timeout: 15_000 })).stdout.trim();

it('Two processes that start from one snapshot are two owners', async () => {
  const blob = join(folder, 'application.blob');
  const entry = join(folder, 'application.cjs');
  await writeFile(entry, APPLICATION);
  await node('--snapshot-blob', blob, '--build-snapshot', entry);
  const start = () => node('--snapshot-blob', blob);
  const [one, other] = await Promise.all([start(), start()]);
  expect(one).toMatch(/^[0-9a-f-]{36}:1$/);
  expect(other).toMatch(/^[0-9a-f-]{36}:1$/);
  expect(one).not.toBe(other);
});
