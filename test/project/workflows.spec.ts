import { validateWorkflow } from '@action-validator/core';
import { describe, expect, it } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
/** Without comments and headings. */
const ci = read('.ci/run').replaceAll(/^ *(?:#|printf).*$/gm, '');

interface Workflow {
  readonly jobs: Record<
    string,
    {
      readonly strategy?: { readonly matrix: Record<string, readonly unknown[]> };
      readonly steps: readonly { readonly uses?: string; readonly run?: string }[];
    }
  >;
}

const files = readdirSync(join(root, '.github/workflows'));
const workflows = new Map(files.map((file) => [file, parse(read(`.github/workflows/${file}`)) as Workflow]));
const stepsOf = (file: string) =>
  Object.values(workflows.get(file)?.jobs ?? {}).flatMap(({ steps }) => steps);
const commands = files.flatMap((file) =>
  stepsOf(file).flatMap(({ run }) => (run === undefined ? [] : [{ file, run }])),
);

/** `npm run lint` of `npm run --ignore-scripts lint -- --quick`: the script that a command starts. */
function scriptOf(command: string): string {
  const [program = '', ...args] = command.split(/\s+/);
  if (program === 'node') return `node ${args[0] ?? ''}`;
  if (program !== 'npm') return program;
  const [verb = '', name = ''] = args.filter((arg) => !arg.startsWith('-'));
  return verb === 'run' ? `npm run ${name}` : `npm ${verb}`;
}

const hasTests = (path: string) => [path, `${path}.spec.ts`].some((name) => existsSync(join(root, name)));

/** The same of all commands that `.ci/run` has. */
const ofCi = new Set(
  [...ci.matchAll(/(?:npm|node|scripts|\.ci)[ /][^\n>&;'"]*/g)].map(([command]) => scriptOf(command.trim())),
);

describe('Workflows', () => {
  it.each(files)('%s has the form of a workflow', (file) => {
    expect(validateWorkflow(read(`.github/workflows/${file}`)).errors).toEqual([]);
  });

  it('are rejected in another form, which shows that the check works', () => {
    const broken = read('.github/workflows/ci.yml').replace('runs-on:', 'runs_on:');
    expect(validateWorkflow(broken).errors).not.toEqual([]);
  });

  it.each(commands)('$file: `$run` starts a script that exists', ({ run }) => {
    const script = scriptOf(run);
    if (/^npm (ci|publish)$/.test(script)) return;
    if (script === 'npm test') expect(scripts).toHaveProperty('test');
    else if (script.startsWith('npm run '))
      expect(Object.keys(scripts)).toContain(script.slice('npm run '.length));
    else expect([script, existsSync(join(root, script.replace(/^node /, '')))]).toEqual([script, true]);
    for (const [path] of run.matchAll(/(?<= )test\/\S+/g))
      expect([path, hasTests(path)]).toEqual([path, true]);
  });

  it.each(commands.filter(({ file }) => file === 'ci.yml'))('`$run` is a step of .ci/run, too', ({ run }) => {
    expect([...ofCi]).toContain(scriptOf(run));
  });

  it('of a release add the check and the publication, and nothing else that CI does not run', () => {
    const others = commands.filter(({ file }) => file === 'release.yml').map(({ run }) => scriptOf(run));
    expect(others.filter((script) => !ofCi.has(script))).toEqual([
      'npm run release:check',
      'npm publish',
      'npm run site', // as test/docs/slow/site.spec.ts
    ]);
  });

  it('leave out no step of .ci/run that checks something', () => {
    const run = new Set(
      commands.filter(({ file }) => file === 'ci.yml').map((command) => scriptOf(command.run)),
    );
    // Its own servers are those of the matrix below.
    const inside = /count\.mjs|test\/jvm\/build|^\.ci$|matrix/;
    expect([...ofCi].filter((script) => !run.has(script) && !inside.test(script))).toEqual([]);
  });

  it('test every version of Node with every server and every version of Nest', () => {
    expect(workflows.get('ci.yml')?.jobs.tests?.strategy?.matrix).toEqual({
      node: [20, 22, 24],
      server: ['redis:7.2', 'redis:8', 'valkey/valkey:8', 'valkey/valkey:9'],
      nest: [11, 12],
    });
    const use = commands.map(({ run }) => run).join('\n') + read('.github/workflows/ci.yml');
    for (const axis of ['node', 'server', 'nest']) expect(use).toContain(`\${{ matrix.${axis} }}`);
    expect(read('jest.config.mjs')).toMatch(/displayName: 'nest-12'[^]*displayName: 'nest-11'/);
  });

  it('use actions of a given version', () => {
    for (const file of files)
      for (const { uses } of stepsOf(file))
        if (uses !== undefined) expect(uses).toMatch(/^actions\/[\w-]+@v\d+$/);
  });
});
