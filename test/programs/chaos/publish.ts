// Usage: npm run chaos:docs -- <file>.json
// Puts the figures of a run into docs/guarantees.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { GROUPS, type Strikes, timesOf } from './strikes.js';
import type { Summary } from './summary.js';

const PAGE = fileURLToPath(new URL('../../../docs/guarantees.md', import.meta.url));
const PLACE = /(<!-- figures -->\n)[^]*(<!-- \/figures -->)/;

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Name the summary of a run: npm run chaos:docs -- figures.json');
const page = readFileSync(PAGE, 'utf8');
if (!PLACE.test(page)) throw new Error('docs/guarantees.md has no place for the figures: <!-- figures -->');
const figures = describe(JSON.parse(readFileSync(file, 'utf8')) as Summary);
const filled = page.replace(PLACE, (_, begin: string, end: string) => `${begin}\n${figures}\n${end}`);
writeFileSync(PAGE, await format(filled, { ...(await resolveConfig(PAGE)), parser: 'markdown' }));

function describe(summary: Summary): string {
  const {
    minutes,
    cores,
    server,
    seed,
    rounds,
    acquisitions,
    ofSeveral,
    handedOver,
    strikes,
    losses,
    expected,
  } = summary;
  const { violations, failedRounds, controls } = summary;
  const uncaught = controls.filter(({ caught }) => Object.keys(caught).length === 0);
  return [
    `Seed ${String(seed)}, ${server ?? 'a server'}, ${String(cores)} cores, ${minutes.toFixed(1)} minutes: ${many(rounds)} rounds,`,
    `${many(acquisitions)} acquisitions (${many(handedOver)} by hand-over inside a process, ${many(ofSeveral)} calls for several`,
    `locks), ${many(timesOf(strikes))} faults.`,
    `**${many(violations)} violations**${failedRounds.length > 0 ? ` in ${many(failedRounds.length)} rounds` : ''}.`,
    `${many(losses)} leases were lost and told so. After a loss of data ${many(expected.overlaps)} holds overlapped, as`,
    `expected; the resource refused ${many(expected.refusedWrites)} writes that came too late, and lost none.`,
    controls.length > 0
      ? `Of ${many(controls.length)} broken locks ${many(controls.length - uncaught.length)} were caught.`
      : '',
    '',
    ...table(['Topology', 'Rounds', 'Acquisitions'], byTopology(summary)),
    '',
    ...table(['Faults', '', 'Times'], byGroup(strikes)),
    '',
  ].join('\n');
}

function byTopology({ byTopology }: Summary): (string | number)[][] {
  return Object.entries(byTopology).map(([name, { rounds, acquisitions }]) => [name, rounds, acquisitions]);
}

function byGroup(strikes: Strikes): (string | number)[][] {
  return GROUPS.flatMap((group) => [
    [`**${group}**`, '', timesOf(strikes, group)],
    ...Object.entries(strikes[group] ?? {})
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([fault, times]) => ['', fault, times]),
  ]);
}

function table(head: string[], rows: (string | number)[][]): string[] {
  const line = (cells: (string | number)[]) =>
    `| ${cells.map((cell) => (typeof cell === 'number' ? many(cell) : cell)).join(' | ')} |`;
  const alignment = head.map((_, index) => (typeof rows[0]?.[index] === 'number' ? '---:' : '---'));
  return [line(head), line(alignment), ...rows.map(line)];
}

function many(count: number): string {
  return count.toLocaleString('en-US');
}
