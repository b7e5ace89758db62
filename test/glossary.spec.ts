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

it('test files have no retired word in their names', () => {
  const names = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.(?:ts|mjs)$/.test(name) && !name.includes('node_modules'),
  );
  expect(names.length).toBeGreaterThan(200);
  expect(names.filter((name) => retiredIn(name).length > 0)).toEqual([]);
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
  /\b(?:who|whoever|whom|somebody|someone|nobody|everybody|everyone|anybody|anyone|he|she|his|her)\b/gi;

const everyFile = readdirSync(`${root}lib`, { recursive: true, encoding: 'utf8' }).filter((name) =>
  /(?<!\.generated)\.(?:ts|lua)$/.test(name),
);

/** The comments of a file, and the texts that it is able to say. */
function wordsOf(file: string): { comments: string; texts: string } {
  const source = readFileSync(`${root}lib/${file}`, 'utf8');
  if (file.endsWith('.lua')) return { comments: source.replaceAll(/^(?!\s*--).*$/gm, ''), texts: '' };
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, false, ts.LanguageVariant.Standard, source);
  const comments: string[] = [];
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    const isComment =
      kind === ts.SyntaxKind.SingleLineCommentTrivia || kind === ts.SyntaxKind.MultiLineCommentTrivia;
    if (isComment) comments.push(scanner.getTokenText());
  }
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isTemplateHead(node)) {
      texts.push(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.ES2022));
  return { comments: comments.join('\n'), texts: texts.join('\n') };
}

it.each(everyFile)('%s has no pronouns for persons in comments and texts', (file) => {
  const { comments, texts } = wordsOf(file);
  expect([...comments.matchAll(PERSONS), ...texts.matchAll(PERSONS)].map(([word]) => word)).toEqual([]);
});

it.each(pagePaths(root))('%s has no pronouns for persons', (path) => {
  expect(readProse(root, path).match(PERSONS) ?? []).toEqual([]);
});

/** What `describe`, `it` and their like are called with first. */
function titlesOf(path: string): string[] {
  const titles: string[] = [];
  const visit = (node: ts.Node): void => {
    const [title] = ts.isCallExpression(node) ? node.arguments : [];
    if (ts.isCallExpression(node) && title !== undefined && /^(?:describe|it)\b/.test(wordsBefore(node))) {
      if (ts.isStringLiteralLike(title)) titles.push(title.text);
      if (ts.isTemplateExpression(title)) {
        titles.push(
          [title.head, ...title.templateSpans.map(({ literal }) => literal)]
            .map(({ text }) => text)
            .join('…'),
        );
      }
    }
    ts.forEachChild(node, visit);
  };
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ES2022);
  const wordsBefore = ({ expression }: ts.CallExpression): string =>
    source.text.slice(expression.pos, expression.end).trim();
  visit(source);
  return titles;
}

const specs = ['test', 'sample-app'].flatMap((folder) =>
  readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.spec.ts') && !name.includes('node_modules'))
    .map((name) => `${folder}/${name}`),
);

it.each(specs)('%s has no pronouns for persons in its titles', (file) => {
  const titles = titlesOf(root + file);
  expect(titles.filter((title) => (title.match(PERSONS) ?? []).length > 0)).toEqual([]);
});

it('finds them', () => {
  const found = 'Whoever waits, and those who hold it: their lock is one whose time is over.'.match(PERSONS);
  expect(found).toEqual(['Whoever', 'who']);
  expect(titlesOf(`${root}test/glossary.spec.ts`)).toContain('finds them');
  expect(everyFile.map((file) => wordsOf(file).comments.length).reduce((a, b) => a + b)).toBeGreaterThan(
    50_000,
  );
  expect(everyFile.map((file) => wordsOf(file).texts.length).reduce((a, b) => a + b)).toBeGreaterThan(20_000);
});
