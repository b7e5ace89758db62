// Turns the board's script and style sheets into a TypeScript module, so that the built package needs no file access.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const folder = fileURLToPath(new URL('../lib/board/', import.meta.url));

/** In the page, templates build elements with lit-html, whose licence goes with it. */
const templates = {
  name: 'templates',
  setup: ({ onResolve }) => {
    onResolve({ filter: /\/markup\.js$/ }, () => ({ path: join(folder, 'browser/markup.ts') }));
  },
};
const LICENCE = join(folder, '../../node_modules/lit-html/LICENSE');
const licence = `/*! lit-html\n${readFileSync(LICENCE, 'utf8').trim()}\n*/`;

async function bundle(file) {
  const isScript = file.endsWith('.ts');
  const { outputFiles } = await build({
    entryPoints: [join(folder, file)],
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    ...(isScript && { format: 'iife', plugins: [templates], banner: { js: licence } }),
    target: ['chrome123', 'firefox120', 'safari17.5'],
    legalComments: 'none',
    // What TypeScript is told for the server, such as its decorators, is not for the browser.
    tsconfigRaw: {},
  });
  return outputFiles[0].text.trim();
}

const [script, style] = await Promise.all([bundle('browser/main.ts'), bundle('styles/board.css')]);
const version = createHash('sha256').update(script).update(style).digest('hex').slice(0, 12);
const lines = [
  '// Made from browser/*.ts and styles/*.css by `npm run build:lua`. Change those, not this.',
  '',
  `export const script: string = ${JSON.stringify(script)};`,
  `export const style: string = ${JSON.stringify(style)};`,
  `/** Changes with the two. */`,
  `export const assetVersion: string = ${JSON.stringify(version)};`,
];
writeFileSync(join(folder, 'assets.generated.ts'), `${lines.join('\n')}\n`);
