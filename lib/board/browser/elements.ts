import type { Child, Tree } from '../view/tree.js';

const SVG = 'http://www.w3.org/2000/svg';

/** Makes the elements of a tree. Texts are set as texts: nothing in them becomes an element. */
function build(child: Child, isInSvg = false): Node | undefined {
  if (child === null || child === false) return undefined;
  if (typeof child !== 'object') return document.createTextNode(String(child));
  return make(child, isInSvg);
}

export function make({ tag, attributes, children }: Tree, isInSvg = false): Element {
  const isSvg = isInSvg || tag === 'svg';
  const element = isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...buildAll(children, isSvg));
  return element;
}

export const buildAll = (children: readonly Child[], isInSvg = false): Node[] =>
  children.map((child) => build(child, isInSvg)).filter((node) => node !== undefined);

/** An element of the page that is there in any case. */
export function one(selector: string, within: ParentNode = document): HTMLElement {
  const element = within.querySelector<HTMLElement>(selector);
  if (element === null) throw new Error(`The page has no ${selector}`);
  return element;
}

export const byId = (id: string): HTMLElement => one(`#${id}`);

/** Sets a text if it is another one: an assignment alone makes the browser work. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Puts new content in, if it differs from the last content. */
export class Slot {
  private shown = '';

  constructor(private readonly element: Element) {}

  show(children: readonly Child[]): void {
    const json = JSON.stringify(children);
    if (json === this.shown) return;
    this.shown = json;
    this.element.replaceChildren(...buildAll(children));
  }
}
