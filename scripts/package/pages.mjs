import { readFileSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { addressOf } from './manifest.mjs';

/** Pages of docs/ for maintainers, and figures, which are read in the repository. */
const ELSEWHERE = /^docs\/(api|design)\/|^docs\/(releasing|benchmarks|scaling)\.md$/;

/** Files of docs/ that a user loads into another program. */
const DATA = /^docs\/observability\/.*\.\w+$/;

const CODE = /(^ *```[^]*?^ *```$|`[^`\n]*`)/m;

/**
 * The pages for users of the package. Their links lead to the pages beside them, and for other files into the repository. All
 * links of README lead into the repository, because the registry shows README without the other pages.
 */
export function pages(root, manifest) {
  const below = readdirSync(join(root, 'docs'), { recursive: true })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((path) => (path.endsWith('.md') || DATA.test(path)) && !ELSEWHERE.test(path));
  const paths = ['README.md', 'LICENSE', 'SECURITY.md', ...below.sort()];
  const repository = addressOf(manifest);
  const linked = (page) => (link, path, anchor) => {
    const target = posix.join(posix.dirname(page), path);
    const isBeside =
      page !== 'README.md' && paths.some((other) => other === target || other.startsWith(`${target}/`));
    if (isBeside || repository === undefined) return link;
    const view = /\.(png|svg)$/.test(path) ? 'raw' : 'blob';
    return `](${repository}/${view}/v${manifest.version}/${target}${anchor})`;
  };
  const textOf = (page) => {
    const text = readFileSync(join(root, page), 'utf8');
    if (page.endsWith('.json')) return JSON.stringify(JSON.parse(text));
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
