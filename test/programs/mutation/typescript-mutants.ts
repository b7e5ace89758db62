import ts from 'typescript';
import type { Mutant } from './mutant.js';

const OTHER = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
  ['&&', '||'],
  ['||', '&&'],
  ['+', '-'],
  ['-', '+'],
  ['*', '/'],
  ['/', '*'],
  ['+=', '-='],
  ['-=', '+='],
  ['++', '--'],
  ['--', '++'],
  ['true', 'false'],
  ['false', 'true'],
  ['Math.min', 'Math.max'],
  ['Math.max', 'Math.min'],
]);

export function typescriptMutants(file: string, source: string): Mutant[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const mutants: Mutant[] = [];
  const replace = (node: ts.Node, after: string | undefined) => {
    if (after === undefined) return;
    const start = node.getStart();
    const line = tree.getLineAndCharacterOfPosition(start).line + 1;
    mutants.push({ file, line, before: node.getText(), after, start, end: node.end });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isImportDeclaration(node)) return;
    const condition = conditionOf(node);
    if (condition !== undefined) {
      replace(condition, `!(${condition.getText()})`);
      replace(condition, ts.isConditionalExpression(node) ? undefined : 'false');
    }
    if (ts.isBinaryExpression(node)) {
      const { left, operatorToken, right } = node;
      if (operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken) replace(node, left.getText());
      // Mixed with `??` the other operator would be a syntax error, and a text has no difference.
      else if (![left, right].some(isText)) replace(operatorToken, OTHER.get(operatorToken.getText()));
    } else if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) {
      const after = OTHER.get(ts.tokenToString(node.operator) ?? '');
      if (node.operator === ts.SyntaxKind.ExclamationToken) replace(node, node.operand.getText());
      else if (after?.length === 2) replace(node, node.getText().replace(/\+\+|--/, after));
    } else if (ts.isPropertyAccessExpression(node) || /^(true|false)$/.test(node.getText())) {
      replace(node, OTHER.get(node.getText()));
    } else if (ts.isExpressionStatement(node) && !node.getText().startsWith('super(')) {
      replace(node, ';');
    } else if (ts.isReturnStatement(node) && !['return;', 'return undefined;'].includes(node.getText())) {
      replace(node, 'return;');
    } else if (ts.isThrowStatement(node)) {
      replace(node, ';');
    } else if (ts.isBlock(node) && ts.isFunctionLike(node.parent) && node.statements.length > 1) {
      replace(node, '{}');
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return mutants;
}

function conditionOf(node: ts.Node): ts.Expression | undefined {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node)) return node.expression;
  return ts.isConditionalExpression(node) ? node.condition : undefined;
}

const isText = (node: ts.Node): boolean => ts.isStringLiteral(node) || ts.isTemplateExpression(node);
