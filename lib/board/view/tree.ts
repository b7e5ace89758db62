/** An element of the page. The server writes it as HTML, and the page's script makes it: both escape all texts. */
export interface Tree {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly Child[];
}

/** `true` is an attribute without a value; an undefined one is left out. */
export type Attributes = Readonly<Record<string, string | number | true | undefined>>;

/** Null and false are left out. */
export type Child = Tree | string | number | null | false;

export const h = (tag: string, attributes: Attributes = {}, ...children: readonly Child[]): Tree => ({
  tag,
  attributes,
  children,
});
