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
 * Copies the built package and breaks the copy. A passage that is not there any more is an error: a control that
 * controls nothing would look like one that is not caught.
 * @returns URL of the copy's entry
 */
export async function breakPackage(entry: string, patches: readonly Patch[]): Promise<string> {
  const dist = dirname(fileURLToPath(entry));
  const root = dirname(dist);
  const copy = await mkdtemp(join(tmpdir(), 'lock-broken-'));
  await cp(dist, join(copy, 'dist'), { recursive: true });
  await cp(join(root, 'package.json'), join(copy, 'package.json'));
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const { file, find, replace } of patches) {
    const path = join(copy, 'dist', file);
    const code = await readFile(path, 'utf8');
    const parts = code.split(find);
    if (parts.length === 1)
      throw new Error(`${file} has nothing any more that a control could replace: ${find}`);
    await writeFile(path, parts.join(replace));
  }
  return pathToFileURL(join(copy, 'dist', 'index.js')).href;
}
