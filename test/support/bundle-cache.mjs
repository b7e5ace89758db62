import { createHash } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the project. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What is made for tests before a run. */
export const CACHE = join(ROOT, 'node_modules', '.cache', 'bundled');

/** A day, ms. Another run may still be reading what is younger. */
const KEPT = 86_400_000;

/** Writes a file whose name has a hash of the content: two runs with other sources at the same time do not meet. @returns its path */
export async function keep(name, extension, text) {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const file = join(CACHE, `${name}-${hash}.${extension}`);
  await write(file, text);
  return file;
}

/** Another run may be reading the file, so it is never half written. */
export async function write(file, text) {
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}-${process.pid}`;
  await writeFile(draft, text);
  await rename(draft, file);
}

export async function removeOld() {
  for (const name of await readdir(CACHE)) {
    const file = join(CACHE, name);
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > KEPT) await rm(file, { force: true, recursive: true });
  }
}
