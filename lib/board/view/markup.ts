/** A piece of the page as text. Every text within it is escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

/** In place of an attribute: there is none. In place of a child: there is none. */
export const nothing = Symbol('nothing');

export type Child = Markup | string | number | typeof nothing | readonly Child[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => ESCAPES[one] ?? '');

/**
 * The tag of all templates. The server writes text, and the script of the page builds elements: there `browser/markup.ts` stands in
 * for this file. An attribute is quoted, or named `?like=` this, which makes it present or absent.
 */
export function markup(strings: TemplateStringsArray, ...values: readonly (Child | boolean)[]): Markup {
  let text = '';
  let begin = 0;
  strings.forEach((string, index) => {
    const part = string.slice(begin);
    const value = values[index] ?? nothing;
    const [attribute, isFlag, name = ''] = /\s(\??)([\w-]+)="?$/.exec(part) ?? [];
    begin = 0;
    if (attribute === undefined || (isFlag === '' && value !== nothing)) text += part + textOf(value);
    else {
      text += part.slice(0, -attribute.length) + (value === true ? ` ${name}` : '');
      // Its closing quotation mark.
      if (isFlag === '') begin = 1;
    }
  });
  return new Markup(text);
}

function textOf(value: Child | boolean): string {
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(textOf).join('');
  return typeof value === 'symbol' ? '' : escaped(String(value));
}

/** A list whose elements keep their place in the page by their key. */
export const each = <T>(
  items: readonly T[],
  _key: (item: T) => unknown,
  show: (item: T, index: number) => Markup,
): Child => items.map(show);
