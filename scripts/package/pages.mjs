import { readFileSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Pages of docs/ for maintainers, and figures, which are read in the repository. */
const ELSEWHERE = /^docs\/(api|design)\/|^docs\/(releasing|benchmarks)\.md$/;

/** Files of docs/ that a user loads into another program. */
const DATA = /^docs\/observability\/.*\.\w+$/;

const CODE = /(^ *```[^]*?^ *```$|`[^`\n]*`)/m;

/** What a user of the package reads, with links that lead from the package as from the repository. */
export function pages(root, manifest) {
  const below = readdirSync(join(root, 'docs'), { recursive: true })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((path) => (path.endsWith('.md') || DATA.test(path)) && !ELSEWHERE.test(path));
  const paths = ['README.md', 'LICENSE', 'SECURITY.md', ...below.sort()];
  const repository = addressOf(manifest);
  const linked = (page) => (link, path, anchor) => {
    const target = posix.join(posix.dirname(page), path);
    const isHere = paths.some((other) => other === target || other.startsWith(`${target}/`));
    if (isHere || repository === undefined) return link;
    const view = /\.(png|svg)$/.test(path) ? 'raw' : 'blob';
    return `](${repository}/${view}/v${manifest.version}/${target}${anchor})`;
  };
  const textOf = (page) => {
    const text = readFileSync(join(root, page), 'utf8');
    if (!page.endsWith('.md')) return text;
    const prose = (part) => withoutPadding(part.replace(/\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)/g, linked(page)));
    return text
      .split(CODE)
      .map((part, n) => (n % 2 === 0 ? prose(part) : part))
      .join('');
  };
  return Object.fromEntries(paths.map((path) => [path, textOf(path)]));
}

/** Tables are aligned in the repository only. */
function withoutPadding(text) {
  return text.replace(/ {2,}(?=\|)/g, ' ').replace(/-{4,}(?=:? \|)/g, '---');
}

/** Undefined before the project has one; a release is refused then. */
function addressOf({ repository }) {
  const address = repository?.url ?? repository;
  return address?.replace(/^git\+/, '').replace(/\.git$/, '');
}
