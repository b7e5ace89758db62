import type { Charter, Member } from './member.js';

/** The numbers on which all members of a quorum should agree. */
export type Numbers = Pick<Charter, 'id' | 'longest' | 'allowed'>;

/** One list of names, in the order that all services use. */
export const namesOf = (members: readonly Member[]): string =>
  members
    .map(({ node }) => node)
    .sort()
    .join(' ');

/**
 * The greatest numbers of some charters. `allowed` counts if at least `voices` charters contain it.
 * @returns undefined without a charter
 */
export function numbersOf(charters: readonly Charter[], voices = 1): Numbers | undefined {
  const [first] = charters;
  if (first === undefined) return undefined;
  const allowed = charters.map((charter) => charter.allowed).sort((a, b) => b - a);
  const longest = Math.max(...charters.map((charter) => charter.longest));
  return { id: first.id, longest, allowed: allowed[voices - 1] ?? 0 };
}

/** The reason why the charters do not belong to one quorum with these members. Undefined if they do. */
export function conflictOf(
  charters: readonly (readonly [node: string, charter: Charter])[],
  members: readonly Member[],
  id: string | undefined,
): string | undefined {
  const own = namesOf(members);
  const strange = charters.find(
    ([, charter]) => charter.size !== members.length || charter.id !== (id ?? charters[0]?.[1].id),
  );
  if (strange === undefined) return undefined;
  const [node, { size, names }] = strange;
  return (
    `are ${String(members.length)} nodes (${own}), but ${node} has the charter of a quorum of ${String(size)} ` +
    `(${names.join(', or ')}); ${CURE}`
  );
}

/** The reason to refuse a member without a charter, in a quorum that knows its members by other names. */
export const strangerOf = (node: string, known: Charter, members: readonly Member[]): string =>
  `are ${String(members.length)} nodes (${namesOf(members)}), but the charter of the quorum names ${known.names.join(', or ')}, and ` +
  `${node} has no charter; ${CURE}`;

const CURE =
  'let all services name the same nodes, or change the set as docs/guide/topologies/redlock.md says under "Change the nodes"';

/** ms for which a majority of the members must have known a run before it may get a vote. */
export const quarantineFor = (longest: number): number => longest * 1.01 + 2;
