import { dirname, join } from 'node:path';
import { rollup } from 'rollup';
import ts from 'typescript';
import { entriesOf } from './manifest.mjs';
import { withTabs } from './tabs.mjs';
import { sharedTexts } from './texts.mjs';

/** A module that takes the folder above its own for the folder of the whole package. */
const CALL_SITE = 'client/scope/call-site';

/**
 * The code of both builds, each as a few files of which all entries share the most. Names, and so the names of classes, stay as
 * they are written.
 */
export async function bundles(root, manifest) {
  const builds = [
    { format: 'es', folder: 'dist', entries: entriesOf(manifest, 'import') },
    { format: 'cjs', folder: 'dist/cjs', entries: entriesOf(manifest, 'require') },
  ];
  const texts = sharedTexts('dist');
  const files = {};
  let cache;
  for (const { format, folder, entries } of builds) {
    // Both are made of the one build that has modules. Those of CommonJS hide what a bundle needs to know.
    const input = entries.map((entry) => entry.slice(folder.length + 1));
    const bundle = await rollup({
      input: Object.fromEntries(input.map((name) => [name, join(root, 'dist', `${name}.js`)])),
      cache,
      external: /^[^./]/,
      plugins: [texts.plugin, { name: 'plain', transform: plain }],
      onwarn: fail,
    });
    cache = bundle.cache;
    const { output } = await bundle.generate({
      format,
      interop: 'auto',
      hoistTransitiveImports: false,
      // Two levels below the package, as the program is, which finds package.json from there.
      chunkFileNames: ({ name }) => (name === CALL_SITE ? '[name].js' : 'chunks/[name].js'),
      manualChunks: (id) => (id.endsWith(`/${CALL_SITE}.js`) ? CALL_SITE : undefined),
    });
    for (const { fileName, code } of output) {
      const path = `${folder}/${fileName}`;
      files[path] = withTabs(texts.linked(code, path));
    }
  }
  return { ...files, ...texts.files };
}

/** A module without its comments, which the declarations have. */
function plain(code) {
  const compilerOptions = { target: 'es2022', module: 'esnext', removeComments: true };
  // What `this` is outside of a module does not matter here, and rollup would tell of each.
  const text = code.replace(/\(this && this\.(__\w+)\) \|\| /g, '');
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

function fail(warning) {
  throw new Error(`The bundle is not as it should be: ${warning.message}`);
}
