import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Code between fences. */
export interface Block {
  /** `docs/guide/service.md:12`, the line of its first code. */
  readonly title: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
}

export interface Page {
  /** From the root of the project, as `docs/guide/service.md`. */
  readonly path: string;
  readonly blocks: readonly Block[];
  /** What its headings are linked by, as GitHub makes it. */
  readonly anchors: readonly string[];
  /** Targets of links and pictures. */
  readonly links: readonly string[];
}

const FENCE = /^ *```(\w*)\n([^]*?)^ *```$/gm;

/** All pages: README and its neighbours, and docs/ without the API reference that TypeDoc writes there. */
export function pagePaths(root: string): string[] {
  const beside = readdirSync(root);
  const below = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => join('docs', name))
    .filter((name) => !name.startsWith('docs/api/'));
  return [...beside, ...below].filter((name) => name.endsWith('.md'));
}

export function readPage(root: string, path: string): Page {
  const source = readFileSync(join(root, path), 'utf8');
  const prose = proseOf(source);
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return {
    path,
    blocks: [...source.matchAll(FENCE)].map(({ index, 1: language = '', 2: code = '' }) => {
      const line = source.slice(0, index).split('\n').length + 1;
      return { title: `${path}:${String(line)}`, line, language, code };
    }),
    anchors: headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
    links: linksOf(source),
  };
}

/** Without code. */
function proseOf(source: string): string {
  return source.replace(FENCE, '').replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]]/g, ''));
}

/** Targets of the links and pictures of a page. */
export function linksOf(source: string): string[] {
  return [...proseOf(source).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
}
