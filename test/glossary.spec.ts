import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import ts from 'typescript';
import { pagePaths, readProse } from './docs/markdown.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const glossary = readFileSync(`${root}docs/design/glossary.md`, 'utf8');
const files = readdirSync(`${root}lib`, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !name.includes('.generated') && !name.startsWith('testing/'),
);

/** Words that the glossary has another one for, as parts of names. */
const RETIRED = [
  ...['place', 'places', 'ear', 'inbox', 'departure', 'departures', 'electorate', 'epoch'],
  ...['troupe', 'obtain', 'beside', 'patience', 'hear', 'hears', 'heard', 'hearing', 'deaf'],
];

/** `acquireAllRequest` is acquire, all, request. */
const partsOf = (name: string) =>
  name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/);

const retiredIn = (name: string) => partsOf(name).filter((part) => RETIRED.includes(part));

/** The names of what a file declares for others: exports, and the members of these. */
function declaredNames(file: string): string[] {
  const source = ts.createSourceFile(
    file,
    readFileSync(`${root}lib/${file}`, 'utf8'),
    ts.ScriptTarget.ES2022,
  );
  const names: string[] = [];
  const visit = (node: ts.Node): void => {
    const { name } = node as { name?: ts.Node };
    if (name !== undefined && ts.isIdentifier(name) && !ts.isParameter(node)) names.push(name.text);
    if (!ts.isBlock(node)) ts.forEachChild(node, visit);
  };
  visit(source);
  return names;
}

it.each(files)('%s has no retired word in its name or in what it declares', (file) => {
  const found = [file, ...declaredNames(file)].filter((name) => retiredIn(name).length > 0);
  expect(found).toEqual([]);
});

it('has a file for each word that says where it stands', () => {
  const named = [...glossary.matchAll(/`((?:core|locks|stores|nest)\/[\w/.-]+\.ts)`/g)].map(
    ([, file = '']) => file,
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((file) => !files.includes(file))).toEqual([]);
});

/** Pronouns for persons, of which a process, a waiter or a script is none. */
const PERSONS =
  /\b(?:who|whoever|whom|whose|somebody|someone|nobody|everybody|everyone|anybody|anyone|he|she|his|her)\b/gi;

function commentsOf(file: string): string {
  const source = readFileSync(`${root}lib/${file}`, 'utf8');
  if (file.endsWith('.lua')) return source.replaceAll(/^(?!\s*--).*$/gm, '');
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, false, ts.LanguageVariant.Standard, source);
  const comments: string[] = [];
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    const isComment =
      kind === ts.SyntaxKind.SingleLineCommentTrivia || kind === ts.SyntaxKind.MultiLineCommentTrivia;
    if (isComment) comments.push(scanner.getTokenText());
  }
  return comments.join('\n');
}

it('says in comments what components do: fewer than 4 pronouns for persons in 1,000 words', () => {
  const all = readdirSync(`${root}lib`, { recursive: true, encoding: 'utf8' });
  const comments = all.filter((name) => /(?<!\.generated)\.(?:ts|lua)$/.test(name)).map(commentsOf);
  const words = comments.join('\n').match(/[A-Za-z']+/g)?.length ?? 0;
  const found = comments.join('\n').match(PERSONS)?.length ?? 0;
  expect(words).toBeGreaterThan(10_000);
  expect((found / words) * 1_000).toBeLessThan(4);
});

/** The pages without their code. docs/benchmarks.md is made from a run, and CHANGELOG.md says what was. */
const pages = pagePaths(root)
  .filter((path) => !/^(?:docs\/benchmarks|CHANGELOG)\.md$/.test(path))
  .map((path) => [path, readProse(root, path)] as const);

it.each(pages)('%s has fewer than 4 pronouns for persons in 1,000 words', (_, prose) => {
  const words = prose.match(/[A-Za-z']+/g)?.length ?? 0;
  const found = prose.match(PERSONS) ?? [];
  expect([found, (found.length / words) * 1_000 < 4]).toEqual([found, true]);
});
