import { lineAt } from './sources.mjs';

const PAGE = 'docs/guarantees.md';
const TABLE = 'test/promises/promises.json';

/** Each promise of the page has a test that `npm test` runs. Without a title, the test has the name of the promise. */
export function* findUntested({ pages, tests, read }) {
  if (!pages.includes(PAGE)) return;
  const page = read(PAGE);
  const table = new Map(Object.entries(JSON.parse(read(TABLE))));
  const [promises = ''] = /^## Promises$[^]*?(?=^## What is not)/m.exec(page) ?? [];
  const start = page.indexOf(promises);
  const names = new Set();
  for (const { 1: name, index } of promises.matchAll(/^- \*\*(.+?)\.?\*\*/gm)) {
    names.add(name);
    const [file = '', title = name] = (table.get(name) ?? '').split(': ', 2);
    const isTested = tests.includes(file) && !file.includes('/slow/') && read(file).includes(title);
    if (!isTested)
      yield {
        path: PAGE,
        line: lineAt(page, start + index),
        rule: `untested promise: ${name}`,
        cure: `name a test of npm test for it in ${TABLE}`,
      };
  }
  for (const name of table.keys())
    if (!names.has(name))
      yield { path: TABLE, line: 1, rule: `no such promise: ${name}`, cure: `name it as ${PAGE} does` };
}
