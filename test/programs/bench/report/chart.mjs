import { contenderOf } from '../contenders.mjs';
import { number } from './figures.mjs';
import { median } from './statistics.mjs';

const PANELS = [
  ['crowd', '100 waiters of one process'],
  ['4x8', '4 processes × 8 waiters'],
  ['32x1', '32 processes × 1 waiter'],
];
const [WIDTH, LABELS, VALUES, BAR, GAP] = [760, 250, 90, 16, 6];

/** Acquisitions per second where many want one lock, as bars on a logarithmic scale. */
export function chart({ results }) {
  const panels = PANELS.filter(([id]) => results[id] !== undefined);
  const all = panels.flatMap(([id]) => barsOf(results[id]).map(({ value }) => value));
  const [low, high] = [10, Math.max(100, ...all)];
  const length = (value) =>
    Math.max(1, (Math.log(Math.max(value, low) / low) / Math.log(high / low)) * (WIDTH - LABELS - VALUES));
  let y = 24;
  const parts = [text(8, y, 'Acquisitions per second, median of the rounds, logarithmic', 'title')];
  for (const [id, title] of panels) {
    y += 30;
    parts.push(text(8, y, title, 'title'));
    y += 8;
    for (const { contender, value } of barsOf(results[id])) {
      const own = contender === 'ours' || contender === 'fair';
      const [top, baseline] = [y, y + BAR - 4];
      parts.push(text(LABELS - 8, baseline, contenderOf(contender).title, 'label'));
      parts.push(
        `<rect x="${LABELS}" y="${top}" width="${length(value).toFixed(1)}" height="${BAR}" class="${own ? 'own' : 'peer'}"/>`,
      );
      parts.push(text(LABELS + length(value) + 6, baseline, number(value, 0), 'value'));
      y += BAR + GAP;
    }
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 12}" role="img" aria-label="Acquisitions per second">`,
    `<style>${STYLE}</style>`,
    '<rect width="100%" height="100%" class="page"/>',
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

const barsOf = ({ samples }) =>
  Object.entries(samples)
    .filter(([contender, rounds]) => contender !== 'no-handoff' && rounds.length > 0)
    .map(([contender, rounds]) => ({ contender, value: median(rounds.map(({ throughput }) => throughput)) }))
    .sort((one, other) => other.value - one.value);

const text = (x, y, content, kind) => `<text x="${x.toFixed(1)}" y="${y}" class="${kind}">${content}</text>`;

const STYLE = [
  'text{font:12px system-ui,sans-serif;fill:#24292f}',
  '.title{font-weight:600}',
  '.label{text-anchor:end}',
  '.page{fill:#fff}',
  '.own{fill:#d6292b}',
  '.peer{fill:#9aa4af}',
  '@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.peer{fill:#57606a}}',
].join('');
