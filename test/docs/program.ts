import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import type { Block } from './markdown.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const directory = fileURLToPath(new URL('./dist', import.meta.url));

/** A block as a module of its own; by its title. */
export interface Program {
  readonly block: Block;
  readonly file: string;
}

/**
 * Writes each block to a file, with the imports that it leaves out on a line of their own above.
 * @param assumed what a block may use without importing it
 */
export function writePrograms(
  blocks: readonly Block[],
  assumed: readonly string[],
): ReadonlyMap<string, Program> {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  const programs = blocks.map((block): [string, Program] => {
    const code = checked(block.code);
    const declared = declaredIn(code);
    const missing = assumed.filter(
      (name) => !declared.has(name) && new RegExp(`(?<![.\\w'])${name}\\b`).test(code),
    );
    const file = `${directory}/${block.title.replace(/\W+/g, '-')}.ts`;
    writeFileSync(file, `import { ${missing.join(', ')} } from '../preamble.js';\n${code}\nexport {};\n`);
    return [block.title, { block, file }];
  });
  return new Map(programs);
}

/** What the compiler says of each block, in one program for all. */
export function typeErrors(programs: ReadonlyMap<string, Program>): ReadonlyMap<string, readonly string[]> {
  const config = ts.readConfigFile(`${root}/tsconfig.json`, (file) => ts.sys.readFile(file)).config as object;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const program = ts.createProgram(
    [...programs.values()].map(({ file }) => file),
    { ...options, noUnusedLocals: false, noUnusedParameters: false },
  );
  return new Map(
    [...programs].map(([title, { block, file }]) => {
      const source = program.getSourceFile(file);
      const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
      return [title, found.map((diagnostic) => describe(diagnostic, block))];
    }),
  );
}

function describe({ file, start = 0, messageText }: ts.Diagnostic, { line }: Block): string {
  const at = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line - 1;
  return `line ${String(line + at)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
}

/** `// → value` at the end of a statement says what it gives, and is held to it. */
function checked(code: string): string {
  return code
    .replace(/^(\s*const (\w+) = .+;) +\/\/ → (.+)$/gm, '$1 expect($2).toEqual($3);')
    .replace(/^(\s*)(?!const )(.+); +\/\/ → (.+)$/gm, '$1expect($2).toEqual($3);');
}

/** The names that stand at the top of a module: what it imports, and what it declares. */
function declaredIn(code: string): Set<string> {
  const names = new Set<string>();
  const add = (name: ts.BindingName): void => {
    if (ts.isIdentifier(name)) names.add(name.text);
    else for (const element of name.elements) if (ts.isBindingElement(element)) add(element.name);
  };
  for (const statement of ts.createSourceFile('block.ts', code, ts.ScriptTarget.ES2022).statements) {
    if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) add(name);
    } else if (ts.isImportDeclaration(statement)) {
      const bindings = statement.importClause?.namedBindings;
      if (bindings !== undefined && ts.isNamedImports(bindings))
        for (const { name } of bindings.elements) add(name);
    } else if (
      (ts.isClassDeclaration(statement) || ts.isFunctionDeclaration(statement)) &&
      statement.name !== undefined
    ) {
      add(statement.name);
    }
  }
  return names;
}
