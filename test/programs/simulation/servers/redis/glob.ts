const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** Whether a text matches a pattern with `*`, `?`, `[…]` and `\`. */
export function matcherOf(pattern: string): (text: string) => boolean {
  const parts = pattern.matchAll(/\\(.)|\[(\^?)((?:\\.|[^\]])*)\]|([*?])|([\s\S])/g);
  let source = '';
  for (const [, escaped, negated, set, wild, other] of parts) {
    if (escaped !== undefined) source += literal(escaped);
    else if (set !== undefined) source += `[${negated ?? ''}${set}]`;
    else if (wild !== undefined) source += wild === '*' ? '.*' : '.';
    else source += literal(other ?? '');
  }
  const matches = new RegExp(`^${source}$`, 's');
  return (text) => matches.test(text);
}
