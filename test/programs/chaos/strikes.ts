/** Faults of one kind. A long run says little of a kind that it has hardly struck with: see Summary. */
export const GROUPS = [
  'processes',
  'callers',
  'client clock',
  'network',
  'messages',
  'server',
  'refusals',
  'data lost',
  'server clock',
  'Sentinel failover',
  'cluster',
  'quorum',
] as const;
export type Group = (typeof GROUPS)[number];

const EVERYWHERE: readonly Group[] = ['processes', 'callers', 'client clock', 'network', 'messages'];
/** Whether faults of the group strike whatever the locks live on. */
export const isEverywhere = (group: Group): boolean => EVERYWHERE.includes(group);

/** How often each fault has struck, by its group. */
export type Strikes = Partial<Record<Group, Record<string, number>>>;

export function count(strikes: Strikes, group: Group, fault: string, times = 1): void {
  const own = (strikes[group] ??= {});
  own[fault] = (own[fault] ?? 0) + times;
}

/** Of a group, or of all. */
export const timesOf = (strikes: Strikes, ...groups: Group[]): number =>
  (groups.length > 0 ? groups : GROUPS)
    .flatMap((group) => Object.values(strikes[group] ?? {}))
    .reduce((sum, times) => sum + times, 0);
