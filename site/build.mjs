// Usage: npm run site
//
// Makes one static site of the pages and the API reference, in dist/site. The pages are copied to site/pages, with README as the first
// page. VitePress fails on a dead link. SITE_BASE is the path of the site on its host, `/` by default.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import './install.mjs';

const site = fileURLToPath(new URL('.', import.meta.url));
const root = join(site, '..');
const pages = join(site, 'pages');

/** Pages outside of docs/, and their names on the site. */
const BESIDE = {
  'README.md': 'index.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security.md',
};

const LINK = /\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)/g;
const CODE = /(^ *```[^]*?^ *```$|`[^`\n]*`)/m;
const IS_PICTURE = /\.(?:png|svg)$/;

/** The path on the site of a file in the repository. */
const placeOf = (path) => BESIDE[path] ?? path.replace(/^docs\//, '');

/** A page with links that lead to the same pages on the site. VitePress draws no diagrams, and has a "next" of its own. */
function pageOf(path) {
  const linked = (_, to, anchor) => {
    const target = placeOf(posix.join(posix.dirname(path), to));
    return `](${posix.relative(posix.dirname(placeOf(path)), target) || posix.basename(target)}${anchor})`;
  };
  return readFileSync(join(root, path), 'utf8')
    .replace(/^Back to \[.*\n\n/m, '')
    .split(CODE)
    .map((part, n) =>
      n % 2 === 0 ? part.replace(LINK, linked) : part.replace(/^( *```)mermaid$/m, '$1text'),
    )
    .join('');
}

rmSync(pages, { recursive: true, force: true });
const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .map((name) => `docs/${name.replaceAll('\\', '/')}`)
  .filter((path) => !path.startsWith('docs/api/') && !statSync(join(root, path)).isDirectory());
for (const path of [...Object.keys(BESIDE), ...docs]) {
  const isPart = path.endsWith('.md') || IS_PICTURE.test(path);
  const target = join(pages, isPart ? '' : 'public', placeOf(path));
  mkdirSync(dirname(target), { recursive: true });
  if (path.endsWith('.md')) writeFileSync(target, pageOf(path));
  else cpSync(join(root, path), target);
}

const run = (program, args) =>
  execFileSync(process.execPath, [join(site, 'node_modules', program), ...args], {
    cwd: site,
    stdio: 'inherit',
  });
run('typedoc/bin/typedoc', ['--options', 'typedoc.json']);
if (!existsSync(join(pages, 'api/index.md'))) throw new Error('TypeDoc has made no API reference');
run('vitepress/bin/vitepress.js', ['build', '.', '--outDir', join(root, 'dist/site')]);
