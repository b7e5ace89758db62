import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const folder = fileURLToPath(new URL('../../.github/ISSUE_TEMPLATE', import.meta.url));
const forms = readdirSync(folder).filter((file) => file !== 'config.yml');
const read = (file: string) => parse(readFileSync(join(folder, file), 'utf8')) as Record<string, unknown>;

interface Element {
  readonly type: string;
  readonly id?: string;
  readonly attributes: Record<string, unknown>;
  readonly validations?: Record<string, unknown>;
}

/** What each element may have, as GitHub's documentation of the syntax says. */
const ATTRIBUTES: Record<string, { needs: string[]; may: string[] }> = {
  markdown: { needs: ['value'], may: [] },
  textarea: { needs: ['label'], may: ['description', 'placeholder', 'value', 'render'] },
  input: { needs: ['label'], may: ['description', 'placeholder', 'value'] },
  dropdown: { needs: ['label', 'options'], may: ['description', 'multiple', 'default'] },
  checkboxes: { needs: ['label', 'options'], may: ['description'] },
};

describe.each(forms)('The issue form %s', (file) => {
  const form = read(file);
  const body = form.body as Element[];

  it('has a name, a description and a body, and no key that a form does not have', () => {
    expect(form).toMatchObject({ name: expect.any(String), description: expect.any(String) });
    expect(Array.isArray(body)).toBe(true);
    const known = ['name', 'description', 'title', 'labels', 'assignees', 'projects', 'type', 'body'];
    expect(Object.keys(form).filter((key) => !known.includes(key))).toEqual([]);
  });

  it('has elements with what their type needs', () => {
    for (const { type, id, attributes, validations, ...rest } of body) {
      expect(rest).toEqual({});
      const { needs, may } = ATTRIBUTES[type] ?? { needs: ['a known type'], may: [] };
      expect(Object.keys(attributes)).toEqual(expect.arrayContaining(needs));
      expect(Object.keys(attributes).filter((key) => ![...needs, ...may].includes(key))).toEqual([]);
      expect(Object.keys(validations ?? {}).filter((key) => key !== 'required')).toEqual([]);
      if (type === 'markdown') expect([id, validations]).toEqual([undefined, undefined]);
      else expect(id).toMatch(/^[\w-]+$/);
    }
  });

  it('asks for something, and for nothing twice', () => {
    const asked = body.filter(({ type }) => type !== 'markdown');
    expect(asked.length).toBeGreaterThan(0);
    expect(new Set(asked.map(({ id }) => id)).size).toBe(asked.length);
    expect(new Set(asked.map(({ attributes }) => attributes.label)).size).toBe(asked.length);
    for (const { attributes } of asked) {
      const options = (attributes.options ?? []) as string[];
      expect(new Set(options).size).toBe(options.length);
    }
  });
});

it('No form has the name of another, and an empty issue cannot be opened', () => {
  expect(new Set(forms.map((file) => read(file).name)).size).toBe(forms.length);
  expect(read('config.yml')).toEqual({ blank_issues_enabled: false });
});
