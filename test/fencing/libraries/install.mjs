// Installs the libraries that the adapters are for, when they are missing or not the ones of the lock file, and generates
// the client of Prisma.
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const wanted = ['package-lock.json', 'schema.prisma'].map(here);
/** It is made last. */
const installed = here('node_modules/.prisma/client/index.js');
const changedAt = (file) => statSync(file).mtimeMs;
const run = (command, args, env = {}) =>
  execFileSync(command, args, { cwd: here('.'), stdio: 'inherit', env: { ...process.env, ...env } });

export function installLibraries() {
  if (existsSync(installed) && wanted.every((file) => changedAt(file) <= changedAt(installed))) return;
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
  // Only the generator runs, which does not need the engine of migrations.
  run('npx', ['prisma', 'generate', '--no-hints'], { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) installLibraries();
