/** The oldest kept entry, if there are more than the bound: the one to forget. */
export function oldestBeyond<K>(
  most: number,
  kept: { readonly size: number; keys(): Iterable<K> },
): K | undefined {
  if (kept.size <= most) return undefined;
  for (const oldest of kept.keys()) return oldest;
  return undefined;
}
