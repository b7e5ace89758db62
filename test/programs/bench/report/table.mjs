import { contenderOf } from '../contenders.mjs';
import { FIGURES, figure, number } from './figures.mjs';
import { summary } from './statistics.mjs';

/** Everything that was measured, for the terminal. */
export function tables({ machine, results }, checks) {
  const { cores, redis, node, java = 'none' } = machine;
  const parts = Object.values(results)
    .filter(({ growth }) => !growth)
    .map((result) => `${result.title}\n${plain(rowsOf(result))}`);
  const growths = Object.values(results).filter(({ growth }) => growth).length;
  return [
    `${cores} cores, Redis ${redis}, Node ${node}, Java ${java}. Medians, and least–most of the rounds.`,
    ...parts,
    ...(growths > 0 ? [`How cost grows: ${growths} steps, see the JSON.`] : []),
    plain([
      ['budget', 'measured', '', 'limit', '', 'floor'],
      ...checks.map(({ title, value, sign, limit, asserted, met, least }) => [
        title,
        number(value, 2),
        sign,
        String(limit),
        met ? 'met' : asserted ? 'FAILED' : 'missed',
        least ? `${number(least.value, 2)}, ${least.what}` : '',
      ]),
    ]),
  ].join('\n\n');
}

/** A header, and one row per contender. */
export function rowsOf({ figures, samples, out }) {
  return [
    ['', ...figures.map((id) => FIGURES[id][0])],
    ...Object.entries(samples).map(([contender, rounds]) => {
      const sums = summary(rounds);
      const cells = figures.map((id) => (sums[id] === undefined ? '–' : figure(sums[id], FIGURES[id][1])));
      const note = out[contender] === undefined ? '' : ` [${out[contender]}]`;
      return [contenderOf(contender).title + note, ...cells];
    }),
  ];
}

export function plain(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const rule = widths.map((width) => '-'.repeat(width));
  return [rows[0], rule, ...rows.slice(1)]
    .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))))
    .map((row) => row.join('  ').trimEnd())
    .join('\n');
}

/** @param texts how many columns are words, and not numbers */
export function markdown(rows, { texts = 1 } = {}) {
  const rule = rows[0].map((_, column) => (column < texts ? '---' : '--:'));
  return [rows[0], rule, ...rows.slice(1)].map((row) => `| ${row.join(' | ')} |`).join('\n');
}
