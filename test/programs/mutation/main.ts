import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Random } from '../chaos/random.js';
import { luaMutants } from './lua-mutants.js';
import { applied, type Mutant } from './mutant.js';
import { stagesFor } from './specs.js';
import { typescriptMutants } from './typescript-mutants.js';

const { values } = parseArgs({
  options: {
    /** How many, drawn from all that there are. */
    sample: { type: 'string', default: '150' },
    seed: { type: 'string', default: '1' },
    /** Only in files whose path begins so. */
    in: { type: 'string', default: 'lib/' },
    /** Mutants at once: the specs mostly wait. */
    lanes: { type: 'string', default: '3' },
    /** Where the survivors go as JSON. */
    output: { type: 'string' },
  },
});

/** A mutant that makes the specs hang is noticed too: when they take so many times as long as without one, and this, ms. */
const TIMES = 3;
const GRACE = 30_000;
const ATTEMPTS = 3;
/** Where the path of the spec stands that has failed, in a copy of the project. */
const FAILED = 'failed-spec';
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDERS = ['lib/client', 'lib/locks', 'lib/nest', 'lib/store', 'lib/stores'];

const mutants = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true }).map((name) => `${folder}/${String(name)}`),
)
  .filter((file) => file.startsWith(values.in) && !file.includes('.generated.'))
  .sort()
  .flatMap((file) => {
    if (file.endsWith('.lua')) return luaMutants(file, readFileSync(join(ROOT, file), 'utf8'));
    return file.endsWith('.ts') ? typescriptMutants(file, readFileSync(join(ROOT, file), 'utf8')) : [];
  });
const random = new Random(Number(values.seed));
const sample = Array.from({ length: Math.min(Number(values.sample), mutants.length) }, () =>
  mutants.splice(Math.floor(random.next() * mutants.length), 1),
).flat();
console.log(
  `${String(sample.length)} of ${String(sample.length + mutants.length)} mutants, seed ${values.seed}`,
);

const scores = new Map<string, { killed: number; of: number }>();
const survivors: Mutant[] = [];
const queue = sample.values();
const copies: string[] = [];
/** The groups of the runs under way. */
const running = new Set<number>();
// However it ends: what is known so far is told, and nothing is left behind.
process.once('exit', () => {
  running.forEach(end);
  for (const copy of copies) rmSync(copy, { recursive: true, force: true, maxRetries: 10 });
  report();
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
// What is red anyway would count as killed.
const stages = new Map(
  sample.flatMap(({ file }) => stagesFor(file)).map((specs) => [specs.join(' '), specs]),
);
const unjudged = stages.values();
/** How long specs take without a mutant, ms. */
const usual = new Map<string, number>();
const lanes = await Promise.all(Array.from({ length: Number(values.lanes) }, lane));
await Promise.all(lanes.map(work));

/** @returns a copy of the project, in which some of the specs have been judged */
async function lane(): Promise<string> {
  const copy = mkdtempSync(join(tmpdir(), 'mutants-'));
  copies.push(copy);
  const left = new Set(['node_modules', '.git', 'coverage']);
  cpSync(ROOT, copy, { recursive: true, filter: (path) => !left.has(basename(path)) });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  for (const specs of unjudged) {
    const begun = performance.now();
    if (await kill(copy, specs)) throw new Error(`Red without a mutant: ${specs.join(', ')}`);
    usual.set(specs.join(' '), performance.now() - begun);
  }
  return copy;
}

async function work(copy: string): Promise<void> {
  for (const mutant of queue) judged(mutant, await survives(copy, mutant));
}

async function survives(copy: string, mutant: Mutant): Promise<boolean> {
  const file = join(copy, mutant.file);
  const source = readFileSync(file, 'utf8');
  const write = (text: string) => {
    writeFileSync(file, text);
    if (file.endsWith('.lua')) spawnSync('node', ['scripts/compile-lua.mjs'], { cwd: copy });
  };
  write(applied(source, mutant));
  try {
    for (const specs of stagesFor(mutant.file)) if (await kill(copy, specs)) return false;
    return true;
  } finally {
    write(source);
  }
}

/** A test may fail once because the machine is busy, and not because of the mutant: it has to fail twice. */
async function kill(copy: string, specs: readonly string[]): Promise<boolean> {
  const time = usual.get(specs.join(' '));
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (await passes(copy, specs, time)) return false;
    // Where they hang there is none.
    const failed = failedSpec(copy);
    if (failed === undefined || !(await passes(copy, [failed], time))) return true;
  }
  return false;
}

function failedSpec(copy: string): string | undefined {
  const file = join(copy, FAILED);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** @param time how long it takes without a mutant, ms */
async function passes(copy: string, specs: readonly string[], time?: number): Promise<boolean> {
  const jest = [
    '--experimental-vm-modules',
    '--no-warnings',
    'node_modules/jest/bin/jest.js',
    '--runInBand',
    '--bail',
  ];
  const reporter = join(copy, 'test/programs/mutation/stop-at-first.mjs');
  const options = [
    '--selectProjects',
    'nest-12',
    '--reporters',
    reporter,
    '--forceExit',
    '--passWithNoTests',
    '--testPathPatterns',
    ...specs,
  ];
  rmSync(join(copy, FAILED), { force: true });
  const env = { ...process.env, FAILED_SPEC: join(copy, FAILED) };
  // A group of its own, so that all of it can be ended.
  const child = spawn('node', [...jest, ...options], { cwd: copy, env, stdio: 'ignore', detached: true });
  const { pid } = child;
  if (pid === undefined) throw new Error('Jest does not start');
  running.add(pid);
  const timer = time && setTimeout(end, TIMES * time + GRACE, pid);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(timer);
  running.delete(pid);
  return code === 0;
}

function end(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function judged(mutant: Mutant, survived: boolean): void {
  const score = scores.get(dirname(mutant.file)) ?? { killed: 0, of: 0 };
  scores.set(dirname(mutant.file), score);
  score.of++;
  if (survived) survivors.push(mutant);
  else score.killed++;
  const short = (text: string) => (text === '' ? 'nothing' : text.replace(/\s+/g, ' ').slice(0, 100));
  const { file, line, before, after } = mutant;
  console.log(
    `${survived ? 'SURVIVED' : 'killed  '} ${file}:${String(line)}  ${short(before)}  →  ${short(after)}`,
  );
}

function report(): void {
  console.table(
    Object.fromEntries(
      [...scores].sort().map(([folder, score]) => [folder, { ...score, '%': percent(score) }]),
    ),
  );
  if (values.output !== undefined) writeFileSync(values.output, `${JSON.stringify(survivors, null, 2)}\n`);
}

function percent({ killed, of }: { killed: number; of: number }): number {
  return Math.round((100 * killed) / of);
}
