import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { SWC } from './swc.mjs';

const swc = createRequire(import.meta.url)('@swc/jest').createTransformer(SWC);

let bundled;

/** The module in the place of one that `bundle-sources.mjs` has bundled. */
function substitute(path) {
  bundled ??= JSON.parse(readFileSync(process.env.LOCK_TEST_BUNDLED, 'utf8'));
  const found = bundled[path];
  if (found === undefined) return undefined;
  const { bundle, name, exports } = found;
  return `import { ${name} as all } from '${bundle}';\nexport const { ${exports.join(', ')} } = all;\n`;
}

const transform = (transformOriginal) => (source, path, options) => {
  const code = substitute(path);
  if (code !== undefined) return { code };
  return path.endsWith('.ts') ? transformOriginal(source, path, options) : { code: source };
};

/** What Jest makes of files: JavaScript of TypeScript, and small modules in the place of those that are bundled. */
export default {
  process: transform(swc.process),
  processAsync: async (...given) => transform(swc.processAsync)(...given),
  getCacheKey(source, path, options) {
    const code = substitute(path);
    if (code === undefined) return swc.getCacheKey(source, path, options);
    return createHash('sha256').update(path).update(code).digest('hex');
  },
};
