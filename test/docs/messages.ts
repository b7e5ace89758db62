import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const lib = fileURLToPath(new URL('../../lib', import.meta.url));
/**
 * Without the suite for the authors of stores, whose words are titles of tests, what metrics say of themselves, and the page of
 * the board. What the command line says of a wrong call is the rule already, and its findings come with their cures.
 */
const OTHERS = [
  String.raw`testing\/(?:describe-lock-store|store-suite)`,
  String.raw`otel\/lock-metrics`,
  String.raw`cli\/(?!failure|run\/)`,
  String.raw`board\/(?:page|view|browser)\/`,
];
const FILE = new RegExp(String.raw`^(?!${OTHERS.join('|')}).*(?<!\.generated)\.ts$`);

/** The English of the package: what its errors and log lines are made of, with … for the parts that vary. */
export function messages(): string[] {
  const files = readdirSync(lib, { recursive: true, encoding: 'utf8' }).filter((name) => FILE.test(name));
  const found = new Set<string>();
  for (const name of files) {
    const visit = (node: ts.Node): void => {
      if (isComparison(node)) return;
      const text = textOf(node);
      if (text === undefined) ts.forEachChild(node, visit);
      else if (/\w \w/.test(text)) found.add(text);
    };
    visit(ts.createSourceFile(name, readFileSync(`${lib}/${name}`, 'utf8'), ts.ScriptTarget.ES2022));
  }
  return [...found];
}

/** What others say, and is looked for. */
const isComparison = (node: ts.Node): boolean =>
  ts.isCallExpression(node) &&
  ts.isPropertyAccessExpression(node.expression) &&
  ['startsWith', 'includes'].includes(node.expression.name.text);

/** A literal, a template, or a sum of them. */
function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) {
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('');
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const [left, right] = [textOf(node.left), textOf(node.right)];
    if (left !== undefined || right !== undefined) return `${left ?? '…'}${right ?? '…'}`;
  }
  return undefined;
}
