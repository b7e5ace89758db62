import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { entriesOf } from './manifest.mjs';
import { withTabs } from './tabs.mjs';

/** The comment of a private member, whose type is not declared either. */
const PRIVATE = /^ *\/\*\*(?:[^*]|\*(?!\/))*\*\/\n( *private )/gm;

/** The declarations that an entry reaches, where the build has them, with their comments. */
export function declarations(root, manifest) {
  const files = {};
  const add = (path) => {
    if (path in files) return;
    const text = readFileSync(join(root, path), 'utf8');
    files[path] = withTabs(withOnePrivate(text.replace(PRIVATE, '$1')));
    for (const [, target] of text.matchAll(/(?:from |import |import\()['"](\.[^'"]+)\.js['"]/g))
      add(join(dirname(path), `${target}.d.ts`));
  };
  const programs = Object.values(manifest.bin ?? {});
  for (const entry of ['import', 'require'].flatMap((condition) => entriesOf(manifest, condition)))
    if (!programs.includes(`./${entry}.js`)) add(`${entry}.d.ts`);
  return files;
}

/** One private member makes a type that only its class has. The names of the others are of no use. */
function withOnePrivate(text) {
  let hasOne = false;
  return text
    .split('\n')
    .filter((line) => {
      if (/^(export )?(default )?(declare )?(abstract )?class /.test(line)) hasOne = false;
      if (!/^ +private .*;$/.test(line)) return true;
      if (hasOne) return false;
      return (hasOne = true);
    })
    .join('\n');
}
