// Usage: npm run bench:docs [-- <file>.json]
// Puts the figures of a run into README.md and docs/.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { chart } from './report/chart.mjs';
import { failuresOf } from './report/failures.mjs';
import { benchmarksPage, fill, values } from './report/pages.mjs';

const root = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const template = (name) => readFileSync(new URL(`docs/${name}.template.md`, import.meta.url), 'utf8');

async function write(path, markdown) {
  const options = await resolveConfig(root(path));
  writeFileSync(root(path), await format(markdown, { ...options, parser: 'markdown' }));
}

const [file = root('test/programs/bench/results/latest.json')] = process.argv.slice(2);
const record = JSON.parse(readFileSync(file, 'utf8'));
if (record.quick) throw new Error('Pages are made from a full run: npm run bench');
const failures = failuresOf(record);
if (failures.length > 0) throw new Error(`Scenarios have ended in an error:\n${failures.join('\n')}`);
const known = values(record);

mkdirSync(root('docs'), { recursive: true });
copyFileSync(file, root('docs/benchmark.json'));
writeFileSync(root('docs/benchmark.svg'), chart(record));
await write('docs/benchmarks.md', benchmarksPage(record));
await write('docs/scaling.md', fill(template('scaling'), known));

const PART = /(<!-- benchmark -->\n)[^]*(<!-- \/benchmark -->)/;
const readme = readFileSync(root('README.md'), 'utf8');
if (!PART.test(readme)) throw new Error('README.md has no place for the figures: <!-- benchmark -->');
const filled = fill(template('readme'), known);
await write(
  'README.md',
  readme.replace(PART, (_, begin, end) => `${begin}\n${filled}\n${end}`),
);
