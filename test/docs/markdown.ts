import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** Code between fences. */
export interface Block {
  /** `README.md:12`, the line of its first code. */
  readonly title: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
}

export interface Page {
  readonly file: string;
  readonly blocks: readonly Block[];
  /** What its headings are linked by, as GitHub makes it. */
  readonly anchors: readonly string[];
  /** Targets of links and pictures. */
  readonly links: readonly string[];
}

const FENCE = /^ *```(\w*)\n([^]*?)^ *```$/gm;

export function readPage(file: string): Page {
  const source = readFileSync(file, 'utf8');
  const prose = source.replace(FENCE, '').replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]]/g, ''));
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return {
    file,
    blocks: [...source.matchAll(FENCE)].map(({ index, 1: language = '', 2: code = '' }) => {
      const line = source.slice(0, index).split('\n').length + 1;
      return { title: `${basename(file)}:${String(line)}`, line, language, code };
    }),
    anchors: headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
    links: [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target),
  };
}
