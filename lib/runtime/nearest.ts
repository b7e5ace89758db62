/** A word that differs in more letters is another word. A shorter word may be the beginning of anything. */
const SLIPS = 2;
const SHORTEST = 3;

/** The known name that was probably meant; undefined when none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length < SHORTEST) return undefined;
  const given = name.toLowerCase();
  const near = known.filter((one) => {
    const word = one.toLowerCase();
    return word.startsWith(given) || given.startsWith(word) || distance(given, word) <= SLIPS;
  });
  return near.toSorted((a, b) => distance(given, a.toLowerCase()) - distance(given, b.toLowerCase()))[0];
}

/** How many letters have to be inserted, left out or changed to turn one word into the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  Array.from(a).forEach((letter, i) => {
    const above = row;
    row = [i + 1];
    Array.from(b).forEach((other, j) => {
      const changed = (above[j] ?? 0) + Number(letter !== other);
      row.push(Math.min(changed, (above[j + 1] ?? 0) + 1, (row[j] ?? 0) + 1));
    });
  });
  return row[b.length] ?? 0;
}
