import ts from 'typescript';
import { lineAt, nodesOf } from './sources.mjs';

const GLOSSARY = 'docs/design/glossary.md';

/** Words that the glossary has another one for, as parts of names. */
const RETIRED = new Set(
  'place places ear inbox departure departures electorate epoch troupe obtain beside patience hear hears heard hearing deaf'.split(
    ' ',
  ),
);

/** `acquireAllRequest` is acquire, all, request. */
const retiredIn = (name) =>
  name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .find((part) => RETIRED.has(part));

/** Names of files, and of what the files of lib declare for others. */
export function* findRetired({ lib, tests, tree }) {
  const finding = (path, line, name) => {
    const word = retiredIn(name);
    const rule = `retired word "${word}" in the name ${name}`;
    return word === undefined ? [] : [{ path, line, rule, cure: `${GLOSSARY} has the word to use` }];
  };
  for (const path of [...lib.filter((path) => !path.startsWith('lib/testing/')), ...tests])
    yield* finding(path, 1, path.replace(/^\w+\//, ''));
  for (const path of lib.filter((path) => !path.startsWith('lib/testing/')))
    for (const node of nodesOf(tree(path), (inner) => !ts.isBlock(inner))) {
      const { name } = node;
      if (name !== undefined && ts.isIdentifier(name) && !ts.isParameter(node))
        yield* finding(path, lineAt(tree(path).text, name.getStart()), name.text);
    }
}

/** The glossary says in which files its words stand. */
export function* findUnknownFiles({ lib, read, pages }) {
  if (!pages.includes(GLOSSARY)) return;
  const text = read(GLOSSARY);
  for (const { 1: file, index } of text.matchAll(
    /`((?:api|client|locks|module|nest|runtime|store|stores)\/[\w/.-]+\.ts)`/g,
  ))
    if (!lib.includes(`lib/${file}`))
      yield {
        path: GLOSSARY,
        line: lineAt(text, index),
        rule: `no file lib/${file}`,
        cure: 'name the file in which the word stands now',
      };
}

/** Pronouns for persons, of which a process, a waiter or a script is none. */
const PERSONS =
  /\b(?:who|whoever|whom|somebody|someone|nobody|everybody|everyone|anybody|anyone|he|she|his|her)\b/gi;

/** In comments and texts of lib, in pages, and in titles of tests. */
export function* findPersons({ lib, scripts, tests, pages, read, tree }) {
  const prose = {
    page: (path) => proseOf(read(path)),
    script: (path) => read(path).replaceAll(/^(?!\s*--).*$/gm, ''),
    code: (path) => keepOnly(tree(path), [...commentsOf(tree(path)), ...textsOf(tree(path))]),
    spec: (path) => keepOnly(tree(path), titlesOf(tree(path))),
  };
  const specs = tests.filter((path) => path.endsWith('.spec.ts'));
  for (const [paths, textOf] of [
    [lib, prose.code],
    [scripts, prose.script],
    [pages, prose.page],
    [specs, prose.spec],
  ])
    for (const path of paths) {
      const text = textOf(path);
      for (const { 0: word, index } of text.matchAll(PERSONS))
        yield {
          path,
          line: lineAt(text, index),
          rule: `"${word}" stands for a person`,
          cure: 'name the component: the process, the caller, the waiter',
        };
    }
}

/** A page without its code, line by line. */
export const proseOf = (text) =>
  text.replaceAll(/^ *```[^]*?^ *```$|`[^`\n]*`/gm, (code) => code.replaceAll(/[^\n]/g, ' '));

/** The text of a file with only these ranges left of each line. */
export function keepOnly({ text }, ranges) {
  const kept = [...text.replaceAll(/[^\n]/g, ' ')];
  for (const { pos, end } of ranges) for (let at = pos; at < end; at++) kept[at] = text[at];
  return kept.join('');
}

export function commentsOf(source) {
  const scanner = ts.createScanner(ts.ScriptTarget.ES2022, false, ts.LanguageVariant.Standard, source.text);
  const comments = [];
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan())
    if (kind === ts.SyntaxKind.SingleLineCommentTrivia || kind === ts.SyntaxKind.MultiLineCommentTrivia)
      comments.push({ pos: scanner.getTokenStart(), end: scanner.getTokenEnd() });
  return comments;
}

const isText = (node) =>
  ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);

const textsOf = (source) => [...nodesOf(source)].filter(isText);

/** Texts that `describe`, `it` and their like are called with first. */
const titlesOf = (source) =>
  [...nodesOf(source)]
    .filter((node) => ts.isCallExpression(node) && /^(?:describe|it)\b/.test(node.expression.getText()))
    .flatMap(({ arguments: [title] }) =>
      title === undefined
        ? []
        : ts.isTemplateExpression(title)
          ? [title.head, ...title.templateSpans.map(({ literal }) => literal)]
          : [title].filter(isText),
    );
