/**
 * The elements that can stay while all get another order: as many as possible. An element that goes from the first place
 * to the last one is then the only one that moves.
 * @param positions in the new order, the present position of each element; undefined for a new one
 * @returns the indexes of those that stay
 */
export function staying(positions: readonly (number | undefined)[]): Set<number> {
  // The longest rising sequence. `ends[n]` is the index at which a sequence of n + 1 may end with the least position.
  const ends: number[] = [];
  const before: (number | undefined)[] = [];
  const positionOf = (index: number | undefined) =>
    (index === undefined ? undefined : positions[index]) ?? -1;
  positions.forEach((position, index) => {
    if (position === undefined) return;
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (positionOf(ends[middle]) < position) low = middle + 1;
      else high = middle;
    }
    before[index] = ends[low - 1];
    ends[low] = index;
  });
  const stays = new Set<number>();
  for (let index = ends.at(-1); index !== undefined; index = before[index]) stays.add(index);
  return stays;
}
