// Turns lib/stores/redis/scripts/*.lua into a TypeScript module, so that the built package needs no file access.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../lib/stores/redis/scripts/', import.meta.url));
const camelCase = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());

const textOf = (file) => readFileSync(join(folder, file), 'utf8');

/** The names of the includes of a file, and of theirs. */
const includesOf = (file) =>
  [...textOf(file).matchAll(/^-- @include (\S+)$/gm)].flatMap(([, name]) => [
    name,
    ...includesOf(`${name}.include.lua`),
  ]);

/**
 * The code of a file. Comments are for readers; the server gets the code.
 * @param around the includes of the file around, which this file need not have again
 */
function codeOf(file, around = []) {
  return textOf(file)
    .replace(/^-- @include (\S+)$/gm, (_, name) =>
      around.includes(name) ? '' : codeOf(`${name}.include.lua`, around).trimEnd(),
    )
    .replace(/^ *-- @script (\S+)$/gm, (_, name) => functionOf(name, includesOf(file)))
    .replace(/^ *--.*\n/gm, '')
    .replace(/\n{2,}/g, '\n')
    .trimStart();
}

/** A script with keys and arguments of its own. */
const functionOf = (name, around) =>
  `['${name}'] = function(KEYS, ARGV)\n${codeOf(`${name}.lua`, around)}end,`;

const lines = ['// Made from scripts/*.lua by `npm run build:lua`. Change those, not this.', ''];
const files = readdirSync(folder).filter((file) => file.endsWith('.lua') && !file.endsWith('.include.lua'));
for (const file of files.sort()) {
  lines.push(`export const ${camelCase(basename(file, '.lua'))}: string = ${JSON.stringify(codeOf(file))};`);
}
writeFileSync(join(folder, '..', 'scripts.generated.ts'), `${lines.join('\n')}\n`);
