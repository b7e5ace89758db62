/** The fields that a user's npm reads. Scripts, tools and workspaces of this repository are not among them. */
const PUBLISHED = [
  ...['name', 'version', 'description', 'license', 'author', 'keywords', 'repository'],
  ...['type', 'engines', 'sideEffects', 'exports', 'bin', 'main', 'types'],
  ...['dependencies', 'peerDependencies', 'peerDependenciesMeta'],
];

/** `homepage` and `bugs` come from `repository`: the address of the project is in one place. */
export function manifestOf(manifest) {
  const home = addressOf(manifest);
  return {
    ...Object.fromEntries(Object.entries(manifest).filter(([field]) => PUBLISHED.includes(field))),
    ...(home && { homepage: `${home}#readme`, bugs: { url: `${home}/issues` } }),
  };
}

/** The web address of the repository; undefined before the project has one, and then a release is refused. */
export function addressOf({ repository }) {
  const address = repository?.url ?? repository;
  return address?.replace(/^git\+/, '').replace(/\.git$/, '');
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
