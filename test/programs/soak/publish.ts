// Usage: npm run soak:docs -- <file>.json
// Puts the figures and the picture of a run into docs/.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { chart } from './chart.js';
import type { Verdict } from './judge.js';
import type { Report } from './report.js';

const root = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const PAGE = root('docs/guarantees.md');
const PLACE = /(<!-- soak -->\n)[^]*(<!-- \/soak -->)/;

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Name the summary of a run: npm run soak:docs -- soak.json');
const report = JSON.parse(readFileSync(file, 'utf8')) as Report;
if (report.options.leak) throw new Error('These shops leaked on purpose');
const page = readFileSync(PAGE, 'utf8');
if (!PLACE.test(page)) throw new Error('docs/guarantees.md has no place for the figures: <!-- soak -->');
const filled = page.replace(
  PLACE,
  (_, begin: string, end: string) => `${begin}\n${describe(report)}\n${end}`,
);
writeFileSync(PAGE, await format(filled, { ...(await resolveConfig(PAGE)), parser: 'markdown' }));
writeFileSync(root('docs/soak.svg'), chart(report));

function describe({
  machine,
  options,
  seconds,
  locks,
  bought,
  soldTwice,
  restarts,
  ...rest
}: Report): string {
  const { verdicts, answers, failures, looks } = rest;
  const none = answers[503] ?? 0;
  const waits = restarts.map(({ firstLock }) => firstLock ?? NaN);
  const away = restarts.map(({ away }) => away);
  return [
    `${machine.server}, Node ${machine.node}, ${String(machine.cores)} cores, ${(seconds / 60).toFixed(1)} minutes: ${many(locks)} locks,`,
    `${(locks / seconds).toFixed(0)} a second of the ${String(options.rate)} that were asked for, by ${String(options.shops)} processes; ${many(bought)} seats sold, **${many(soldTwice)} of them twice**.`,
    `${String(restarts.length)} restarts of the server, which was away for ${span(away)} ms; the next buyer had the lock ${span(waits)} ms after it was`,
    `back. ${many(none)} buyers were told that Redis was away. ${many(looks.length)} looks, **${many(failures.length)} failures**.`,
    '',
    ...table(verdicts),
    '',
    '![Memory, sockets, timers, listeners and keys over the time of the run](soak.svg)',
    '',
  ].join('\n');
}

/** Of each measure the process in which it grew most. */
function table(verdicts: readonly Verdict[]): string[] {
  const worst = new Map<string, Verdict>();
  for (const verdict of verdicts) {
    const before = worst.get(verdict.title);
    if (before === undefined || growth(verdict) > growth(before)) worst.set(verdict.title, verdict);
  }
  return [
    '| Measure, of the process in which it grew most | Early | Late | May grow by |',
    '| --- | ---: | ---: | ---: |',
    ...[...worst.values()].map((verdict) => {
      const cell = (value: number) =>
        `${value.toFixed(verdict.unit === '' ? 0 : 1)} ${verdict.unit}`.trimEnd();
      return `| ${[verdict.title, cell(verdict.early), cell(verdict.late), cell(verdict.allowed)].join(' | ')} |`;
    }),
  ];
}

function growth({ early, late }: Verdict): number {
  return late - early;
}

function span(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)}`;
}

function many(count: number): string {
  return count.toLocaleString('en-US');
}
