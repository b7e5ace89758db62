// Usage: npm run test:all -- test/stores/conformance --json --outputFile=<file>.json && node test/programs/conformance/publish.mjs <file>.json
// Puts into docs/guide/topologies.md what has passed the conformance suite in that run.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';

const topologies = fileURLToPath(new URL('../../../docs/guide/topologies.md', import.meta.url));
const run = JSON.parse(readFileSync(process.argv[2], 'utf8'));
if (!run.success) throw new Error('Only a run in which everything has passed can be told of');

const passed = new Map();
for (const { ancestorTitles, status } of run.testResults.flatMap((file) => file.assertionResults)) {
  const [title = ''] = ancestorTitles;
  const place = title.replace('lock store: ', '');
  if (title !== place && status === 'passed') passed.set(place, (passed.get(place) ?? 0) + 1);
}
const rows = [...passed].sort().map(([place, count]) => `| ${place} | ${count} |`);
const [server] = /\d+\.\d+\.\d+/.exec(spawnSync('redis-server', ['--version']).stdout);
const versions = `Redis ${server}, Node ${process.versions.node}`;

const PART = /(<!-- conformance -->\n)[^]*(<!-- \/conformance -->)/;
const table = ['', `| passed by (${versions}) | tests |`, '| --- | --- |', ...rows, '', ''].join('\n');
const page = readFileSync(topologies, 'utf8').replace(PART, (_, start, end) => `${start}${table}${end}`);
writeFileSync(topologies, await format(page, { ...(await resolveConfig(topologies)), parser: 'markdown' }));
