import { posix } from 'node:path';
import { lineAt } from './sources.mjs';

/**
 * What each room may import besides itself. Arrows point one way: module and nest, locks, client, store. Client and stores stand
 * side by side on the port.
 */
const MAY_IMPORT = {
  // Clock, timers, chance, durations, texts.
  runtime: [],
  // What a user's code names.
  api: ['runtime'],
  store: ['runtime', 'api'],
  stores: ['runtime', 'api', 'store'],
  client: ['runtime', 'api', 'store'],
  locks: ['runtime', 'api', 'client'],
  module: ['runtime', 'api', 'store', 'client', 'locks', 'stores', 'nest'],
  nest: ['runtime', 'api', 'client', 'locks', 'module'],
  // No room imports these: what they need is installed only by some.
  health: ['api', 'module', 'nest'],
  otel: ['runtime', 'api', 'module', 'client'],
  fencing: ['runtime', 'api', 'client', 'locks', 'nest'],
  cli: ['runtime', 'api', 'store', 'module', 'client', 'locks', 'stores', 'fencing'],
  board: ['runtime', 'api', 'store', 'module', 'client', 'locks', 'nest'],
  testing: ['runtime', 'api', 'store', 'module', 'client', 'locks', 'stores', 'nest'],
  index: ['runtime', 'api', 'store', 'module', 'locks', 'stores', 'nest'],
};

/** What they may name besides, as types. The options and the health report name types of the port. */
const MAY_NAME = { api: ['store'] };

/** Which files of lib may import a package, and which its types alone. */
const PACKAGES = [
  [/^ioredis$/, /^(?:stores\/redis\/|stores\/create-store\.ts|cli\/doctor\/)/, /^api\/options\.ts$/],
  [/^@nestjs\/terminus$/, /^health\//, /^$/],
  [/^@opentelemetry\//, /^otel\//, /^$/],
  // Of what no application needs, only the errors make Nest answer.
  [/^@nestjs\//, /^(?!store|stores|client|locks|runtime|api\/(?!errors|lock-error))/, /^api\//],
];

/** What decides, besides the store, in which order and when things happen. */
const RUNTIME =
  /\b(?:Date\.now|new Date\(\)|performance\.|setTimeout|setInterval|setImmediate|clear(?:Timeout|Interval|Immediate)|queueMicrotask|nextTick|hrtime|uptime\(|Math\.random|random(?:UUID|Bytes|Int)|getRandomValues|AbortSignal\.timeout|timers\/promises|Atomics\.wait)/;
const SEAM = 'runtime/runtime.ts';
const FROM_SEAM = new Set(['runtime', 'api', 'store', 'client', 'locks', 'stores']);

function roomOf(file) {
  const [folder, ...rest] = file.split('/');
  return rest.length > 0 ? folder : folder.replace(/\.ts$/, '');
}

/** What a file of lib imports: another one, or a package. */
function importsOf(file, source) {
  const clauses = source.matchAll(
    /^(?:import|export) (?!const|function|class)([^;']*?)(?:from )?'([^']+)'/gm,
  );
  return [...clauses].map(({ 1: clause, 2: from, index }) => ({
    target: from.startsWith('.')
      ? posix.join(posix.dirname(file), from).replace(/\.js$/, '.ts')
      : from.replace(/^((?:@[^/]+\/)?[^/]+).*$/, '$1'),
    isFile: from.startsWith('.'),
    isType: clause.startsWith('type '),
    line: lineAt(source, index),
  }));
}

export function* findImports({ lib, read }) {
  const files = lib.map((path) => path.replace(/^lib\//, ''));
  const graph = new Map(files.map((file) => [file, importsOf(file, read(`lib/${file}`))]));
  for (const [file, imports] of graph)
    for (const one of imports)
      for (const [rule, cure] of faultsOf(file, one, graph))
        yield { path: `lib/${file}`, line: one.line, rule, cure };
  for (const circle of circlesOf(graph))
    yield {
      path: `lib/${circle[0]}`,
      line: graph.get(circle[0]).find(({ target }) => target === circle[1]).line,
      rule: `a file imports itself: ${circle.join(' → ')}`,
      cure: 'move what both need into a file of its own',
    };
}

function* faultsOf(file, { target, isFile, isType }, graph) {
  const [from, to] = [roomOf(file), roomOf(target)];
  if (isFile && !graph.has(target) && !target.includes('.generated'))
    yield [`there is no file lib/${target}`, 'import a file that exists'];
  else if (
    isFile &&
    !target.includes('.generated') &&
    from !== to &&
    !MAY_IMPORT[from]?.includes(to) &&
    !(isType && MAY_NAME[from]?.includes(to))
  )
    yield [`room ${from} must not import room ${to} (${target})`, 'let arrows go one way, over the port'];
  const [, folder, other] = /^stores\/(\w+)\/.* stores\/(.+)$/.exec(`${file} ${target}`) ?? [];
  if (other !== undefined && !isType && !other.startsWith(`${folder}/`))
    yield [`store ${folder} must not import ${target}`, 'move what stores share into the port'];
  if (isFile) return;
  const [, values, types] = PACKAGES.find(([name]) => name.test(target)) ?? [];
  if (values !== undefined && !values.test(file) && !(isType && types.test(file)))
    yield [`${file} must not import ${target}`, 'keep the package in the rooms that need it'];
  // The command line begins without Nest and ioredis, for which it looks first.
  if (file === 'cli/main.ts' && !isType && !target.startsWith('node:'))
    yield [`${file} must not load ${target}`, 'import it only when a command runs'];
}

/** Chains of imports that come back to where they begin. A type loads nothing: an object may name the one that it belongs to. */
function circlesOf(graph) {
  const circles = [];
  const done = new Set();
  const visit = (file, way) => {
    const at = way.indexOf(file);
    if (at >= 0) circles.push([...way.slice(at), file]);
    if (at >= 0 || done.has(file)) return;
    for (const { target, isType } of graph.get(file) ?? []) if (!isType) visit(target, [...way, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return circles;
}

/** Time, timers and chance come from the seam, comments and texts aside. */
export function* findRuntime({ lib, read }) {
  for (const path of lib) {
    const file = path.replace(/^lib\//, '');
    if (file === SEAM || !FROM_SEAM.has(roomOf(file))) continue;
    for (const [index, line] of read(path).split('\n').entries()) {
      const code = line.replace(/^\s*(?:\*|\/[/*]).*$| \/\/ .*$/, '').replace(/'[^']* [^']*'/g, '');
      const [name] = RUNTIME.exec(code) ?? [];
      if (name !== undefined)
        yield {
          path,
          line: index + 1,
          rule: `takes ${name} from the runtime`,
          cure: `import it from lib/${SEAM}`,
        };
    }
  }
}
