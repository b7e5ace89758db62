import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { exchangeable } from '../world/exchangeable.js';

const DIST = fileURLToPath(new URL('../../../../dist', import.meta.url));
/** What the simulation runs. */
const FOLDERS = ['api', 'client', 'locks', 'module', 'runtime', 'store', 'stores'];

const CHANGES = [
  'set',
  'add',
  'push',
  'pop',
  'shift',
  'unshift',
  'splice',
  'delete',
  'clear',
  'sort',
  'fill',
];

/** Computed when it is needed first, and the same for all processes. */
const THE_SAME_FOR_ALL = 'stores/redis/connection/slots.js: numbers';

/**
 * What a module keeps between calls: variables that a function assigns, objects that one changes, of the module or of a class,
 * and what is found under a symbol of globalThis. A WeakMap or WeakSet keeps only what some object has.
 */
function keptIn(code: string): string[] {
  const source = ts.createSourceFile('module.js', code, ts.ScriptTarget.ESNext, true);
  const names = new Map<string, ts.Expression | undefined>();
  for (const statement of source.statements) {
    if (ts.isVariableStatement(statement))
      for (const { name, initializer } of statement.declarationList.declarations)
        names.set(name.getText(), initializer);
    if (ts.isClassDeclaration(statement))
      for (const member of statement.members)
        if (ts.isPropertyDeclaration(member) && ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Static)
          names.set(`${statement.name!.text}.${member.name.getText()}`, member.initializer);
  }
  const changed = new Set<string>();
  const change = (target: ts.Expression): void => {
    if (names.has(target.getText())) changed.add(target.getText());
    else if (ts.isPropertyAccessExpression(target) || ts.isElementAccessExpression(target))
      change(target.expression);
  };
  const visit = (node: ts.Node): void => {
    if (!isInFunction(node)) {
      // Runs once.
      if (ts.isVariableDeclaration(node) && node.initializer?.getText().includes('shared[') === true)
        changed.add(node.name.getText());
    } else if (ts.isBinaryExpression(node) && isAssignment(node.operatorToken.kind)) change(node.left);
    else if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) {
      const counts = [ts.SyntaxKind.PlusPlusToken, ts.SyntaxKind.MinusMinusToken].includes(node.operator);
      if (counts) change(node.operand);
    } else if (ts.isDeleteExpression(node)) change(node.expression);
    else if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { expression, name } = node.expression;
      if (CHANGES.includes(name.text)) change(expression);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...changed].filter((name) => names.get(name)?.getText().startsWith('new Weak') !== true);
}

const isInFunction = (node: ts.Node): boolean => ts.findAncestor(node, ts.isFunctionLike) !== undefined;

const isAssignment = (kind: ts.SyntaxKind) =>
  kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;

const takenFrom = (code: string) =>
  /take: \(\) => \[(.*)\],/.exec(exchangeable(code))?.[1]?.split(', ') ?? [];

const modules = FOLDERS.flatMap((folder) =>
  readdirSync(join(DIST, folder), { recursive: folder !== '', encoding: 'utf8' })
    .filter((file) => file.endsWith('.js'))
    .map((file) => join(folder, file)),
);

describe('The modules that the processes of a simulation share', () => {
  it('are seen to keep something', () => {
    expect(keptIn('let last;\nexport const next = () => (last = 1);')).toEqual(['last']);
    expect(keptIn('let calls = 0;\nfunction f() { calls++; }')).toEqual(['calls']);
    expect(keptIn('const seen = new Map();\nfunction f() { seen.set(1, 2); }')).toEqual(['seen']);
    expect(keptIn('const all = [];\nfunction f() { all.push(1); }')).toEqual(['all']);
    expect(keptIn('const state = { a: { b: 0 } };\nfunction f() { state.a.b = 1; }')).toEqual(['state']);
    expect(keptIn('class A { static all = []; f() { A.all.push(this); } }')).toEqual(['A.all']);
    expect(keptIn('const of = new WeakMap();\nfunction f(o) { of.set(o, 2); }')).toEqual([]);
    expect(keptIn('const shared = globalThis;\nconst own = (shared[KEY] ??= new Map());')).toEqual(['own']);
    expect(keptIn('let A = class {};\nA = decorated(A);')).toEqual([]);
    expect(keptIn('const NAMES = ["a"];\nfunction f() { const own = []; own.push(NAMES[0]); }')).toEqual([]);
  });

  it('give all that they keep when another process runs', () => {
    const kept = modules.flatMap((file) => {
      const code = readFileSync(join(DIST, file), 'utf8');
      const taken = takenFrom(code);
      return keptIn(code).map((name) => ({ name: `${file}: ${name}`, taken: taken.includes(name) }));
    });
    expect(kept.length).toBeGreaterThan(5);
    expect(kept.filter(({ taken }) => !taken).map(({ name }) => name)).toEqual([THE_SAME_FOR_ALL]);
  });
});
