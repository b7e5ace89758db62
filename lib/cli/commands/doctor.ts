import { createRequire } from 'node:module';
import { readVersion } from '../version.js';
import { type Examination, examine } from '../doctor/examine.js';
import type { Finding } from '../doctor/finding.js';
import { EXIT } from '../exit-code.js';
import type { Given } from '../given.js';
import type { Screen } from '../output/screen.js';
import { json } from '../output/text.js';
import { ask } from '../service.js';

/** ms: a deadlock takes a while to be certain. */
const TIMEOUT = 30_000;

export async function run(given: Given, screen: Screen): Promise<number> {
  const context = { keyPrefix: given.value('prefix') ?? 'lock:', isCluster: given.flag('cluster') };
  const found = await ask(given, (service) => examine(service, context), { usual: TIMEOUT });
  if (given.flag('json')) screen.print(json(report(found)));
  else for (const line of linesOf(found, screen)) screen.print(line);
  const levels = new Set(found.findings.map(({ level }) => level));
  return levels.has('error') ? EXIT.errors : levels.has('warning') ? EXIT.no : EXIT.done;
}

const versions = () => ({
  package: readVersion(),
  node: process.versions.node,
  ioredis: (createRequire(import.meta.url)('ioredis/package.json') as { version: string }).version,
});

function report({ status, health, latencies, findings }: Examination) {
  const nodes = health.nodes.map((node) => ({ ...node, latency: latencies.get(node.node) ?? null }));
  return { status, versions: versions(), nodes, findings };
}

function* linesOf({ status, health, findings }: Examination, screen: Screen): Generator<string> {
  const { package: own, node, ioredis } = versions();
  yield `nestjs-distributed-lock ${own}, Node.js ${node}, ioredis ${ioredis}: ${status}`;
  for (const place of new Set([...health.nodes.map((one) => one.node), undefined])) {
    const here = findings.filter((finding) => finding.node === place);
    if (here.length === 0) continue;
    yield '';
    yield screen.style('bold', place ?? 'The fleet');
    for (const finding of here) yield* linesOfOne(finding, screen);
  }
}

const COLOURS = { ok: 'green', warning: 'yellow', error: 'red' } as const;

function* linesOfOne(finding: Finding, screen: Screen): Generator<string> {
  const { level, message } = finding;
  yield `  ${screen.style(COLOURS[level], level.padEnd(7))}  ${message}`;
  if (finding.level !== 'ok') yield `           → ${finding.cure}`;
}
