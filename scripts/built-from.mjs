// Usage: node scripts/built-from.mjs        exits with 1 unless dist was built from the sources of now
//        node scripts/built-from.mjs --note  notes, at the end of a build, what it was built from
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
/** In dist, with which it goes. */
const NOTE = `${root}dist/.built-from`;
const INPUTS =
  /^(lib\/.*|scripts\/(build|compile-|mark-).*|tsconfig.*\.json|nest-cli\.json|package(-lock)?\.json)$/;

const hash = createHash('sha256');
const listed = ['lib', 'scripts'].flatMap((folder) =>
  readdirSync(root + folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      `${entry.parentPath ?? entry.path}/${entry.name}`.replaceAll('\\', '/').slice(root.length),
    ),
);
for (const path of [...listed, ...readdirSync(root)].filter((path) => INPUTS.test(path)).sort()) {
  hash.update(`${path}\0`).update(readFileSync(root + path));
}
const sources = hash.digest('hex');

if (process.argv[2] === '--note') writeFileSync(NOTE, sources);
else if (!existsSync(NOTE) || readFileSync(NOTE, 'utf8') !== sources) process.exitCode = 1;
