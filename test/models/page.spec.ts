import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}docs/design/models.md`, 'utf8');

const MODELS = readdirSync(`${root}test/models`, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'slow')
  .map(({ name }) => name);

const sourceOf = (model: string) =>
  readdirSync(`${root}test/models/${model}`)
    .map((file) => readFileSync(`${root}test/models/${model}/${file}`, 'utf8'))
    .join('\n');

const sectionOf = (model: string) =>
  page.split(/^## /m).find((section) => section.includes(`\`test/models/${model}\``)) ?? '';

interface Row {
  readonly part: string;
  readonly code: string;
  readonly line: string;
}

function rowsOf(section: string): Row[] {
  const rows = section.matchAll(/^\| `(\w+)` +\| (`lib\/[^`]+`|only in the model) +\| (.*?) +\|$/gm);
  return [...rows].map(([, part = '', code = '', line = '']) => ({ part, code, line }));
}

describe.each(MODELS)('The page about the model %s', (model) => {
  const source = sourceOf(model);
  const section = sectionOf(model);
  const rows = rowsOf(section);
  const parts = [...source.matchAll(/^inline (\w+)\(/gm)].map(([, name = '']) => name);

  it('quotes lines that the code has', () => {
    const quoted = rows.filter(({ code }) => code.startsWith('`'));
    expect(quoted.length).toBeGreaterThan(10);
    const isMissing = ({ code, line }: Row) =>
      !/^`.+`$/.test(line) || !readFileSync(root + code.slice(1, -1), 'utf8').includes(line.slice(1, -1));
    expect(quoted.filter(isMissing)).toEqual([]);
  });

  it('has all parts of the model, and no others', () => {
    const named = new Set(rows.map(({ part }) => part));
    expect(parts.filter((part) => !named.has(part))).toEqual([]);
    const isPart = (name: string) => new RegExp(`^(?:inline|#define) ${name}\\(`, 'm').test(source);
    expect([...named].filter((name) => !isPart(name))).toEqual([]);
  });

  it('has all mutants of the model, and no others', () => {
    const settings = ['N', 'FAULTS', 'CLAIM', 'LEASE', 'APART', 'ATTEMPTS', 'RESTARTS', 'LOSSES'];
    const mutants = [...source.matchAll(/^#ifn?def (\w+)/gm)].map(([, name = '']) => name);
    const named = [...section.matchAll(/^\| `([A-Z_]+)` +\|/gm)].map(([, name = '']) => name);
    expect(named).toHaveLength(new Set(named).size);
    expect(new Set(named)).toEqual(new Set(mutants.filter((name) => !settings.includes(name))));
  });
});
