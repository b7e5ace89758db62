import type { Child, Tree } from '../view/tree.js';

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');

const WITHOUT_END = new Set(['meta', 'link', 'input', 'br', 'hr']);

const written = new WeakMap<Tree, string>();

/** The tree itself, which becomes text now and not again: for parts that the pages of all viewers have. */
export function shared(tree: Tree): Tree {
  written.set(tree, htmlOf(tree));
  return tree;
}

/** The tree as HTML. Its texts and attributes come out unchanged, with any content. */
export function htmlOf(tree: Child): string {
  if (tree === null || tree === false) return '';
  if (typeof tree !== 'object') return escaped(String(tree));
  return (
    written.get(tree) ??
    `<${tree.tag}${attributesOf(tree)}>${
      WITHOUT_END.has(tree.tag) ? '' : `${tree.children.map(htmlOf).join('')}</${tree.tag}>`
    }`
  );
}

const attributesOf = ({ attributes }: Tree): string =>
  Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (value === true ? ` ${name}` : ` ${name}="${escaped(String(value))}"`))
    .join('');
