import type { Charter, Member } from './member.js';

/** The numbers on which all members of a quorum should agree. */
export type Numbers = Pick<Charter, 'id' | 'longest' | 'allowed'>;

/** One list of names, in the order that all services use. */
export const namesOf = (members: readonly Member[]): string =>
  members
    .map(({ node }) => node)
    .sort()
    .join(' ');

/** The greatest numbers of some charters. `allowed` counts if at least `voices` charters contain it. */
export function numbersOf(charters: readonly Numbers[], voices = 1): Numbers | undefined {
  const [first] = charters;
  if (first === undefined) return undefined;
  const allowed = charters.map((charter) => charter.allowed).sort((a, b) => b - a);
  const longest = Math.max(...charters.map((charter) => charter.longest));
  return { id: first.id, longest, allowed: allowed[voices - 1] ?? 0 };
}

/** Why a service is refused whose `node` has the charter of another set of members, or none if it `isEmpty`. */
export const conflictWith = (
  { size, names }: Charter,
  members: readonly Member[],
  node: string,
  isEmpty: boolean,
): string =>
  `are ${String(members.length)} nodes (${namesOf(members)}), but ${node} has ${isEmpty ? 'no' : 'the'} charter of a quorum of ` +
  `${String(size)} (${names.join(', or ')}); let all services name the same nodes, or change the set as ` +
  'docs/guide/topologies/redlock.md says under "Change the nodes"';

/** ms for which a majority of the members must have known a run before it may get a vote. */
export const quarantineFor = (longest: number): number => longest * 1.01 + 2;
