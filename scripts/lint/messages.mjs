import ts from 'typescript';
import { lineAt, nodesOf } from './sources.mjs';

/** The symptoms, and the pages of texts beside them. */
const PAGE = /^docs\/troubleshooting(?:\.md$|\/)/;
const CURE = 'give it a row in a page of docs/troubleshooting/';

/**
 * SQL is no message. The suite for the authors of stores has titles of tests, metrics and the answers of an API describe themselves, and so does the page of the board. What
 * the command line says of a wrong call is the rule already, and its findings come with their cures.
 */
const NOT_EXPLAINED =
  /^lib\/(?:fencing\/dialect|testing\/(?:describe-lock-store|store-suite)|otel\/lock-metrics|nest\/filter\/api-lock-responses|cli\/(?!failure|run\/)|board\/(?:page|view|browser)\/)/;

/** Shorter texts are words for use inside of others, but for rules of options and what a log line may end with. */
const SENTENCE = /\w \w+ \w|^must be .|^is \w+$|more locks$/;

/** Each text of an error or a log line has its row in a page, and each row is a text. */
export function* findUnexplained({ lib, pages, read, tree }) {
  const explaining = pages.filter((path) => PAGE.test(path)).map((path) => ({ path, page: read(path) }));
  if (explaining.length === 0) return;
  const spoken = lib
    .filter((path) => !NOT_EXPLAINED.test(path))
    .flatMap((path) => [...messagesOf(tree(path))].map((message) => ({ path, ...message })));
  const quoted = explaining
    .flatMap(({ page }) => [...page.matchAll(/`([^`]+)`/g)])
    .map(([, text]) => text)
    .filter((text) => text.includes(' '));
  for (const { path, line, text } of spoken)
    if (SENTENCE.test(text) && !quoted.some((quote) => text.includes(quote)))
      yield { path, line, rule: `unexplained message: ${text}`, cure: CURE };
  for (const { path, page } of explaining)
    for (const { 1: cell, index } of page.matchAll(/^\| ((?:`[^`]+`(?:, | *\|))+)/gm))
      for (const [, text] of cell.matchAll(/`([^`]+)`/g))
        if (text.includes(' ') && !spoken.some((message) => message.text.includes(text)))
          yield {
            path,
            line: lineAt(page, index),
            rule: `nothing says: ${text}`,
            cure: 'quote a text of lib, or remove the row',
          };
}

/** The English of a file: what its errors and log lines are made of, with … for the parts that vary. */
function* messagesOf(source) {
  // What others say, and is looked for, is no message; a text is one as a whole.
  const isWhole = (node) => isComparison(node) || textOf(node) !== undefined;
  for (const node of nodesOf(source, (inner) => !isWhole(inner))) {
    const text = isComparison(node) ? undefined : textOf(node);
    if (text !== undefined && /\w \w/.test(text)) yield { text, line: lineAt(source.text, node.getStart()) };
  }
}

const isComparison = (node) =>
  ts.isCallExpression(node) &&
  ts.isPropertyAccessExpression(node.expression) &&
  ['startsWith', 'includes'].includes(node.expression.name.text);

/** A literal, a template, or a sum of them. */
function textOf(node) {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('');
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  return left === undefined && right === undefined ? undefined : `${left ?? '…'}${right ?? '…'}`;
}
