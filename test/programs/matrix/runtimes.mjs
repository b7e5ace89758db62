import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE } from './cache.mjs';

/** A major version of Node as the npm registry has it, and the folder of its program. */
export function runtime(major) {
  const folder = join(CACHE, `node-${major}`);
  const name = `node-${process.platform}-${process.arch}`;
  const bin = join(folder, 'node_modules', name, 'bin');
  if (!existsSync(bin)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    console.error(`Fetching Node ${major}`);
    const options = ['--no-audit', '--no-fund', '--ignore-scripts'];
    execFileSync('npm', ['install', ...options, `${name}@${major}`], { cwd: folder, stdio: 'ignore' });
  }
  const version = execFileSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' }).trim();
  return { title: `Node ${version.slice(1)}`, bin };
}
