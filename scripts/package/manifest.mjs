/** What a user's npm reads. Scripts, tools and workspaces of this repository are not among it. */
const PUBLISHED = [
  ...['name', 'version', 'description', 'license', 'author', 'keywords', 'repository', 'homepage', 'bugs'],
  ...['type', 'engines', 'sideEffects', 'exports', 'bin', 'main', 'types'],
  ...['dependencies', 'peerDependencies', 'peerDependenciesMeta'],
];

export function manifestOf(manifest) {
  return Object.fromEntries(Object.entries(manifest).filter(([field]) => PUBLISHED.includes(field)));
}

/** The entries of one build, such as `dist/board/index`. */
export function entriesOf(manifest, condition) {
  const targets = Object.values(manifest.exports).flatMap((entry) => entry[condition]?.default ?? []);
  if (condition === 'import') targets.push(...Object.values(manifest.bin ?? {}));
  return targets.map((target) => target.replace(/^\.\//, '').replace(/\.js$/, ''));
}

/** A package.json per subpath, for resolution that knows no `exports`, and one that marks the second build. */
export function pointers(manifest) {
  const subpaths = Object.entries(manifest.exports).filter(([name, entry]) => name !== '.' && entry.require);
  const text = (value) => `${JSON.stringify(value, null, 2)}\n`;
  return {
    'dist/cjs/package.json': text({ type: 'commonjs' }),
    ...Object.fromEntries(
      subpaths.map(([name, { require: target }]) => [
        `${name.slice(2)}/package.json`,
        text({ main: `.${target.default}`, types: `.${target.types}` }),
      ]),
    ),
  };
}
