import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { defineConfig } from 'vitepress';

const read = (path) => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8');

/** A page of docs/ as an entry of the menu. */
const entry = (path) => ({
  text: /^# (?:Troubleshooting: )?(.+)$/m
    .exec(read(path))[1]
    .replaceAll('`', '')
    .replace(/^./, (letter) => letter.toUpperCase()),
  link: `/${path.replace(/\.md$/, '')}`,
});

/** The reading order of the guide: the links "Next". */
function inOrder(path) {
  const [, next] = /^Back to .+ Next: \[[^\]]+\]\(([^)]+)\)\.$/m.exec(read(path)) ?? [];
  return [path, ...(next === undefined ? [] : inOrder(posix.join(posix.dirname(path), next)))];
}

const guide = inOrder('guide/module.md');
const group = (text, pattern, collapsed = true) => ({
  text,
  collapsed,
  items: guide.filter((path) => pattern.test(path)).map(entry),
});

export default defineConfig({
  title: 'nestjs-distributed-lock',
  description: 'Distributed locks for NestJS on Redis',
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'pages',
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  // Files that are loaded into other programs.
  ignoreDeadLinks: [/observability\//],
  transformPageData: ({ relativePath, frontmatter }) => {
    const at = guide.indexOf(relativePath);
    if (at < 0) return;
    frontmatter.prev = at > 0 && entry(guide[at - 1]);
    frontmatter.next = at + 1 < guide.length && entry(guide[at + 1]);
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/guide/module' },
      { text: 'API', link: '/api/' },
      { text: 'Guarantees', link: '/guarantees' },
    ],
    sidebar: [
      { text: 'Introduction', link: '/' },
      group('Guide', /^guide\/[^/]+$/, false),
      group('Topologies', /^guide\/topologies\//),
      group('Recipes', /^guide\/recipes\//),
      group('Migration', /^guide\/migration\//),
      group('Troubleshooting', /^troubleshooting/),
      {
        text: 'Background',
        collapsed: true,
        items: ['guarantees.md', 'scaling.md', 'benchmarks.md', 'design/overview.md', 'releasing.md'].map(
          entry,
        ),
      },
      { text: 'API reference', link: '/api/' },
    ],
  },
});
