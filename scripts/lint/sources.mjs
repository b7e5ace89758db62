import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';

/** The files of a project, by their paths from its root. */
export function openSources(root) {
  const trees = new Map();
  const below = (folder, pattern) =>
    (existsSync(posix.join(root, folder))
      ? readdirSync(posix.join(root, folder), { recursive: true, encoding: 'utf8' })
      : []
    )
      .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
      .filter((path) => pattern.test(path) && !/node_modules|\.generated\.|^docs\/api\//.test(path))
      .sort();
  const read = (path) => readFileSync(posix.join(root, path), 'utf8');
  const tree = (path) => {
    const parse = () => ts.createSourceFile(path, read(path), ts.ScriptTarget.ES2022, true);
    if (!trees.has(path)) trees.set(path, parse());
    return trees.get(path);
  };
  return {
    lib: below('lib', /\.ts$/),
    scripts: below('lib', /\.lua$/),
    tests: [...below('test', /\.(?:ts|mjs)$/), ...below('sample-app', /\.spec\.ts$/)],
    pages: [...readdirSync(root).filter((name) => name.endsWith('.md')), ...below('docs', /\.md$/)],
    read,
    tree,
  };
}

export const lineAt = (text, index) => text.slice(0, index).split('\n').length;

/** All nodes below one, for which `enters` says whether to look inside. */
export function* nodesOf(node, enters = () => true) {
  yield node;
  const children = [];
  if (enters(node)) ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* nodesOf(child, enters);
}
