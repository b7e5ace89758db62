import { describe, expect, it } from '@jest/globals';
import { check, skipped } from '../spin.js';

const MODEL = 'queue/queue.pml';
/** `MODELS=long` checks more processes, more faults and finer times: minutes. */
const isLong = process.env.MODELS === 'long';

const EXCLUSION = /number<=1/;
const ORDER = /passed==0/;
const WAKING = /idle<=allowed/;

const PROFILES = [
  { profile: 'three processes without a fault', defines: ['FAULTS=0'], long: false },
  { profile: 'three processes and two faults', defines: [], long: false },
  {
    profile: 'a lease of three claims of two ticks',
    defines: ['FAULTS=1', 'CLAIM=2', 'LEASE=6'],
    long: true,
  },
  { profile: 'four processes and a fault', defines: ['N=4', 'FAULTS=1'], long: true },
  { profile: 'two faults and finer times', defines: ['CLAIM=2', 'LEASE=4'], long: true },
];

const MUTANTS = [
  ['RELEASE_BY_ANY_OWNER', EXCLUSION],
  ['RENEWAL_REVIVES', EXCLUSION],
  ['CLAIM_TAKEN_FOR_A_LEASE', EXCLUSION],
  ['OWNER_USED_TWICE', EXCLUSION],
  ['DEADLINE_FROM_THE_ANSWER', EXCLUSION],
  ['SERVED_FROM_THE_END', ORDER],
  ['RELEASE_WITHOUT_HAND_OVER', WAKING],
  ['WAITS_FOR_MESSAGES_ONLY', WAKING],
  ['NOT_ASKED_AGAIN_AFTER_NEXT', WAKING],
  ['CLAIM_WITHOUT_END', WAKING],
  ['DEAD_WAITERS_ARE_LET_IN', WAKING],
  ['GIVING_UP_KEEPS_THE_GRANT', WAKING],
] as const;
/** One fault is not enough for these. */
const NEED_TWO: readonly string[] = ['DEADLINE_FROM_THE_ANSWER'];

(skipped === '' ? describe : describe.skip)(`The model of the queue across the fleet${skipped}`, () => {
  it.each(PROFILES.filter(({ long }) => isLong || !long))(
    'has one holder at a time, in order, and no lost wake-up: $profile',
    async ({ profile, defines }) => {
      const verdict = await check(MODEL, { defines, optimized: true });
      console.log(`${profile}: ${String(verdict.states)} states`);
      expect(verdict).toMatchObject({ errors: 0, violation: undefined, exhaustive: true });
      expect(verdict.states).toBeGreaterThan(1_000);
      if (!defines.includes('FAULTS=0')) expect(verdict.unreached).toEqual([]);
    },
    600_000,
  );

  it.each(MUTANTS)(
    'fails as %s',
    async (mutant, property) => {
      const defines = [mutant, NEED_TWO.includes(mutant) ? 'FAULTS=2' : 'FAULTS=1'];
      const { errors, violation } = await check(MODEL, { defines });
      expect({ errors, violation }).toEqual({ errors: 1, violation: expect.stringMatching(property) });
    },
    600_000,
  );
});
