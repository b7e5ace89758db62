import type { ServiceState } from '../../module/service-state.js';
import type { BoardElection } from '../view/wire.js';

/** How many elections are shown: the leader of each is a question to the store. */
const MOST = 50;

/** The elections that this application takes part in, by name. */
export async function electionsOf(state: ServiceState | undefined): Promise<BoardElection[]> {
  const elections = [...(state?.elections() ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MOST);
  return await Promise.all(
    elections.map(async (election) => ({
      name: election.name,
      state: election.state,
      leader: await election.leader(),
    })),
  );
}
