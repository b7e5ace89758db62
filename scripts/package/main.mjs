// Usage: node scripts/package/main.mjs [<folder>]
//
// Puts together what is published, in a folder of its own (default: dist/package). It reads what `npm run build` has
// made. docs/releasing.md says what the package holds.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundles } from './bundles.mjs';
import { declarations } from './declarations.mjs';
import { manifestOf, pointers } from './manifest.mjs';
import { pages } from './pages.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = resolve(process.argv[2] ?? join(root, 'dist/package'));
const manifest = manifestOf(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));

rmSync(folder, { recursive: true, force: true });
const files = {
  'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
  ...pointers(manifest),
  ...pages(root, manifest),
  ...declarations(root, manifest),
  ...(await bundles(root, manifest)),
};
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text, { mode: /^#!/.test(text) ? 0o755 : 0o644 });
}
