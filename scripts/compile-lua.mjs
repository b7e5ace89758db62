// Turns lib/stores/redis/scripts/*.lua into a TypeScript module, so that the built package needs no file access.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../lib/stores/redis/scripts/', import.meta.url));
const camelCase = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());

/** Comments are for readers; the server gets the code. */
const codeOf = (file) =>
  readFileSync(join(folder, file), 'utf8')
    .replace(/^-- @include (\S+)$/gm, (_, name) => codeOf(`${name}.include.lua`).trimEnd())
    .replace(/^ *-- @script (\S+)$/gm, (_, name) => functionOf(name))
    .replace(/^ *--.*\n/gm, '')
    .replace(/\n{2,}/g, '\n')
    .trimStart();

/** A script with keys and arguments of its own. */
const functionOf = (name) => `['${name}'] = function(KEYS, ARGV)\n${codeOf(`${name}.lua`)}end,`;

const lines = ['// Made from scripts/*.lua by `npm run build:lua`. Change those, not this.', ''];
const files = readdirSync(folder).filter((file) => file.endsWith('.lua') && !file.endsWith('.include.lua'));
for (const file of files.sort()) {
  lines.push(`export const ${camelCase(basename(file, '.lua'))} = ${JSON.stringify(codeOf(file))};`);
}
writeFileSync(join(folder, '..', 'scripts.generated.ts'), `${lines.join('\n')}\n`);
