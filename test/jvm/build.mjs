// Compiles the worker with Maven, once for each state of its sources: before the `jvm` project of Jest, for the benchmark,
// or by hand.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIRECTORY = fileURLToPath(new URL('.', import.meta.url));
const STAMP = join(DIRECTORY, 'target', 'sources.sha256');
/** ms. Maven itself waits for a registry that does not answer for half an hour. */
const PATIENCE = 240_000;

/** @returns why the worker cannot run on this machine; an empty text where it can */
export function build() {
  const missing = ['java', 'mvn'].filter((program) => !runs(program));
  if (missing.length > 0) return `no ${missing.join(' and ')} on this machine`;
  const sources = hashOfSources();
  if (stamp() === sources) return '';
  const maven = spawnSync('mvn', ['-q', '-B', 'compile', 'dependency:copy-dependencies'], {
    cwd: DIRECTORY,
    encoding: 'utf8',
    timeout: PATIENCE,
  });
  if (maven.status === 0) {
    writeFileSync(STAMP, sources);
    return '';
  }
  const output = `${maven.stdout}${maven.stderr}`;
  console.log(output);
  const reason = /^.*ERROR.*$/m.exec(output)?.[0] ?? `it did not end within ${PATIENCE / 1_000} s`;
  return `Maven could not build the worker: ${reason}`;
}

const runs = (program) => spawnSync(program, ['-version'], { stdio: 'ignore' }).error === undefined;

function hashOfSources() {
  const sources = join(DIRECTORY, 'src');
  const files = readdirSync(sources, { recursive: true }).filter((file) => file.endsWith('.java'));
  const hash = createHash('sha256').update(readFileSync(join(DIRECTORY, 'pom.xml')));
  for (const file of files.toSorted()) hash.update(file).update(readFileSync(join(sources, file)));
  return hash.digest('hex');
}

function stamp() {
  try {
    return readFileSync(STAMP, 'utf8');
  } catch {
    return undefined;
  }
}

/** The processes of Jest have this one's environment. */
export default function provideJvm() {
  const missing = build();
  process.env.JVM_MISSING = missing;
  if (missing !== '') console.log(`The tests with Redisson on a JVM cannot run: ${missing}.`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const missing = build();
  if (missing !== '') console.error(missing);
  process.exitCode = missing === '' ? 0 : 1;
}
