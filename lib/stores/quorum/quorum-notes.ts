import type { StoreLabels, StoreWaits } from '../../store/lock-store.js';
import { gather, isMajority, tally, valuesOf } from './ballot.js';
import { askMajority } from './outcomes.js';
import type { Quorum } from './quorum.js';

/** One member's answer is enough, because no lock depends on a label. */
export const quorumLabels = (quorum: Quorum): StoreLabels => ({
  keep: async (client, label, time) => {
    await Promise.any(quorum.members.map(async ({ store }) => store.labels?.keep(client, label, time)));
  },
  find: async (client) => {
    const isLabel = (label: string | undefined) => label !== undefined;
    const answers = await gather(
      quorum,
      ({ store }) => store.labels?.find(client),
      (told) => (tally(told, isLabel) > 0 ? 'decided' : isMajority(told) ? 'enough' : 'open'),
    );
    return valuesOf(answers).find(isLabel);
  },
});

/** A note counts if a majority has it, because a member that has missed some notes reports waits that have ended. */
export const quorumWaits = (quorum: Quorum): StoreWaits => ({
  keep: async (client, note, time) => {
    await askMajority(quorum, undefined, async ({ store }) => store.waits?.keep(client, note, time));
  },
  find: async (client) => {
    const answers = await askMajority(quorum, undefined, async ({ store }) => store.waits?.find(client));
    const isCommon = (note: string | undefined) => tally(answers, (other) => other === note) >= quorum.needed;
    return valuesOf(answers).find(isCommon);
  },
  forget: async (client) => {
    await askMajority(quorum, undefined, async ({ store }) => store.waits?.forget(client));
  },
});
