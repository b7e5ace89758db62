import type { Sample } from './judge.js';
import type { Report } from './report.js';

interface Panel {
  readonly title: string;
  /** One line for each process. */
  readonly lines: readonly (readonly [at: number, value: number])[][];
}

const [WIDTH, LEFT, RIGHT, HEIGHT, GAP, TOP] = [760, 48, 12, 64, 34, 44];

/** What has to stay flat, over the time of the run, with a mark for each restart. */
export function chart(report: Report): string {
  const { looks, restarts, seconds } = report;
  const x = (at: number) => LEFT + (at / seconds) * (WIDTH - LEFT - RIGHT);
  const panels = panelsOf(looks);
  const height = TOP + panels.length * (HEIGHT + GAP);
  const parts = panels.flatMap(({ title, lines }, index) => {
    const top = TOP + index * (HEIGHT + GAP);
    const highest = roundUp(Math.max(1, ...lines.flat().map(([, value]) => value)));
    const y = (value: number) => top + HEIGHT * (1 - value / highest);
    return [
      text(LEFT, top - 8, title, 'title'),
      text(LEFT - 6, top + 8, String(highest), 'label'),
      text(LEFT - 6, top + HEIGHT, '0', 'label'),
      `<path d="M${String(LEFT)} ${String(top)}V${String(top + HEIGHT)}H${String(WIDTH - RIGHT)}" class="axis"/>`,
      ...restarts.map(
        ({ at }) => `<path d="M${x(at).toFixed(1)} ${String(top)}v${String(HEIGHT)}" class="restart"/>`,
      ),
      ...lines.map(
        (line, shop) =>
          `<polyline points="${line.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ')}" class="line${String(shop)}"/>`,
      ),
    ];
  });
  const minutes = Math.round(seconds / 60);
  const summary = `Memory, sockets, timers, listeners and keys over ${String(minutes)} minutes`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(WIDTH)} ${String(height)}" role="img" aria-label="${summary}">`,
    `<style>${STYLE}</style>`,
    '<rect width="100%" height="100%" class="page"/>',
    text(LEFT, 16, `${summary}, a line for each process; dashed: the server restarts`, 'label start'),
    ...parts,
    text(LEFT, height - 10, '0', 'label start'),
    text(WIDTH - RIGHT, height - 10, `${String(minutes)} min`, 'label'),
    '</svg>',
    '',
  ].join('\n');
}

function panelsOf(looks: readonly Sample[]): Panel[] {
  const ofShops = (figureOf: (shop: Sample['shops'][number]) => number) =>
    (looks[0]?.shops ?? []).map((_, shop) =>
      looks.map(({ at, shops }): [number, number] => [at, figureOf(shops[shop]!)]),
    );
  const rates = looks.slice(1).map(({ at, locks }, index): [number, number] => {
    const before = looks[index]!;
    return [at, (locks - before.locks) / (at - before.at)];
  });
  return [
    { title: 'Locks a second', lines: [rates] },
    { title: 'Heap after a collection, MB', lines: ofShops(({ heap }) => heap) },
    { title: 'Resident memory, MB', lines: ofShops(({ rss }) => rss) },
    { title: 'Sockets', lines: ofShops(({ sockets }) => sockets) },
    { title: 'Timers', lines: ofShops(({ timers }) => timers) },
    { title: 'Listeners', lines: ofShops(({ listeners }) => listeners) },
    { title: 'Keys in Redis', lines: [looks.map(({ at, server }) => [at, server.keys])] },
  ];
}

/** Up to two digits, so that the scale has a number to read. */
function roundUp(value: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / step) * step;
}

const text = (x: number, y: number, content: string, kind: string) =>
  `<text x="${x.toFixed(1)}" y="${String(y)}" class="${kind}">${content}</text>`;

const STYLE = [
  'text{font:12px system-ui,sans-serif;fill:#24292f}',
  '.title{font-weight:600}',
  '.label{text-anchor:end}',
  '.start{text-anchor:start}',
  '.page{fill:#fff}',
  'path,polyline{fill:none;stroke-width:1}',
  '.axis{stroke:#9aa4af}',
  '.restart{stroke:#9aa4af;stroke-dasharray:2 3}',
  '.line0{stroke:#d6292b}',
  '.line1{stroke:#0969da}',
  '.line2{stroke:#1a7f37}',
  '@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.axis,.restart{stroke:#57606a}}',
].join('');
