import type { StoreLabels, StoreWaits } from '../../store/lock-store.js';
import { askMembers, type Cast } from './ask-members.js';
import type { Quorum } from './quorum.js';

/** One member's answer is enough, because no lock depends on a label. */
export const quorumLabels = ({ members, presence }: Quorum): StoreLabels => ({
  keep: async (client, label, time) => {
    await Promise.any(members.map(async ({ store }) => store.labels?.keep(client, label, time)));
  },
  find: async (client) => {
    const found = members.map(async ({ store }, index) => {
      const asked = presence.observe(index, Promise.resolve(store.labels?.find(client)));
      const label = await presence.unlessAbsent(index, asked);
      if (label === undefined) throw new Error('none');
      return label;
    });
    return await Promise.any(found).catch(() => undefined);
  },
});

/** A note counts if a majority has it, because a member that has missed some notes reports waits that have ended. */
export const quorumWaits = (quorum: Quorum): StoreWaits => ({
  keep: async (client, note, time) => {
    await askMembers(quorum, undefined, async ({ waits }) => waits?.keep(client, note, time));
  },
  find: async (client) => {
    const cast = await askMembers(quorum, undefined, async ({ waits }) => waits?.find(client));
    return commonNote(cast, quorum.needed);
  },
  forget: async (client) => {
    await askMembers(quorum, undefined, async ({ waits }) => waits?.forget(client));
  },
});

function commonNote(cast: Cast<string | undefined>, needed: number): string | undefined {
  const times = new Map<string, number>();
  for (const answer of cast) {
    if (answer === undefined || !('value' in answer) || answer.value === undefined) continue;
    const count = (times.get(answer.value) ?? 0) + 1;
    if (count >= needed) return answer.value;
    times.set(answer.value, count);
  }
  return undefined;
}
