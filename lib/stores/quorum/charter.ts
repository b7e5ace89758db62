import type { Member, Numbers } from './member.js';

/** One list of names, in the order that all services use. */
export const namesOf = (members: readonly Member[]): string =>
  members
    .map(({ node }) => node)
    .sort()
    .join(' ');

/** The greatest numbers. */
export function numbersOf(charters: readonly Numbers[]): Numbers | undefined {
  const [first] = charters;
  if (first === undefined) return undefined;
  const longest = Math.max(...charters.map((charter) => charter.longest));
  return { id: first.id, longest, allowed: Math.max(...charters.map(({ allowed }) => allowed)) };
}

/** ms for which a majority of the members must have known a run before it may get a vote. */
export const quarantineFor = (longest: number): number => longest * 1.01 + 2;

/** The value that so many have at least. Undefined if there are fewer values. */
export const sharedBy = (count: number, values: readonly number[]): number | undefined =>
  [...values].sort((a, b) => b - a)[count - 1];
