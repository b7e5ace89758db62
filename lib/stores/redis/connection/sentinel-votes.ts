/** The address of a server. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Asks all sentinels for the master. One of them may be cut off from the others and not know of a failover, so only a
 * majority counts.
 * @param ask asks one sentinel; null if it knows no master
 * @returns a sentinel that names the address that a majority of all sentinels names, if that is not `present`
 */
export async function majorityAgainst<S>(
  present: Address,
  sentinels: readonly S[],
  ask: (sentinel: S) => Promise<Address | null>,
): Promise<S | undefined> {
  const votes = await Promise.all(
    sentinels.map(async (sentinel) => ({ sentinel, address: await ask(sentinel).catch(() => null) })),
  );
  const against = votes.filter(({ address }) => address !== null && !isSame(address, present));
  return against.find(
    ({ address }) =>
      2 *
        against.filter((vote) => address !== null && vote.address !== null && isSame(vote.address, address))
          .length >
      sentinels.length,
  )?.sentinel;
}

const isSame = (one: Address, other: Address): boolean => one.host === other.host && one.port === other.port;
