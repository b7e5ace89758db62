import { cp, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** A passage of the built package, wherever it stands, and what stands there instead. */
export interface Patch {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/**
 * The files that the patches change, as they are then. A passage that is not there any more is an error: a control that
 * controls nothing would look like one that is not caught.
 */
export async function patched(dist: string, patches: readonly Patch[]): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const { file, find, replace } of patches) {
    const parts = (files.get(file) ?? (await readFile(join(dist, file), 'utf8'))).split(find);
    if (parts.length === 1)
      throw new Error(`${file} has nothing any more that a control could replace: ${find}`);
    files.set(file, parts.join(replace));
  }
  return files;
}

/**
 * Copies the built package and breaks the copy.
 * @returns URL of the copy's entry
 */
export async function breakPackage(entry: string, patches: readonly Patch[]): Promise<string> {
  const dist = dirname(fileURLToPath(entry));
  const root = dirname(dist);
  const changed = await patched(dist, patches);
  const copy = await mkdtemp(join(tmpdir(), 'lock-broken-'));
  const cjs = join(dist, 'cjs');
  await cp(dist, join(copy, 'dist'), { recursive: true, filter: (source) => source !== cjs });
  await cp(join(root, 'package.json'), join(copy, 'package.json'));
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const [file, code] of changed) await writeFile(join(copy, 'dist', file), code);
  return pathToFileURL(join(copy, 'dist', 'index.js')).href;
}
