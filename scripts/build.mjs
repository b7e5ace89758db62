// Builds dist: the ES modules, and beside them the modules for CommonJS, at the same time, since each is the work of one core.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const cwd = fileURLToPath(new URL('../', import.meta.url));

const run = (script) =>
  new Promise((resolve) => {
    spawn('npm', ['run', script], { cwd, stdio: 'inherit', shell: true }).once('close', resolve);
  });

rmSync(`${cwd}dist`, { recursive: true, force: true });
const codes = await Promise.all(['build:esm', 'build:cjs'].map(run));
process.exitCode = codes.some((code) => code !== 0) ? 1 : 0;
