// Turns lib/stores/redis/scripts/*.lua into a TypeScript module, so that the built package needs no file access.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../lib/stores/redis/scripts/', import.meta.url));
const camelCase = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());

const lines = ['// Made from scripts/*.lua by `npm run build:lua`. Change those, not this.', ''];
for (const file of readdirSync(folder).sort()) {
  const source = readFileSync(join(folder, file), 'utf8');
  // The header is for readers; the server gets the code.
  const code = source.replace(/^(--.*\n)+\n/, '');
  lines.push(`export const ${camelCase(basename(file, '.lua'))} = ${JSON.stringify(code)};`);
}
writeFileSync(join(folder, '..', 'scripts.generated.ts'), `${lines.join('\n')}\n`);
