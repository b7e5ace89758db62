import { describe, expect, it } from '@jest/globals';
import { check, skipped } from '../spin.js';

const MODEL = 'tokens/tokens.pml';
/** `MODELS=long` checks more: see queue.spec.ts. */
const isLong = process.env.MODELS === 'long';

const TOKENS = /token>last_token/;
const EXCLUSION = /!\(\(\(client\[\(1-p\)\]/;

const PROFILES = [
  { profile: 'two attempts, a restart and a lost answer', defines: [], long: false },
  { profile: 'clocks apart by more than a lease', defines: ['APART=4', 'RESTARTS=0'], long: true },
  { profile: 'three attempts', defines: ['ATTEMPTS=3', 'RESTARTS=0', 'LOSSES=0'], long: true },
];

const MUTANTS = [
  { mutant: 'MAJORITY_OF_HALF', property: EXCLUSION, defines: [] },
  { mutant: 'CLOCK_WITHOUT_FENCE', property: TOKENS, defines: [] },
  { mutant: 'RELEASE_LOWERS_THE_FENCE', property: TOKENS, defines: [] },
  { mutant: 'RELEASE_WITHOUT_TOKEN', property: TOKENS, defines: [] },
  { mutant: 'TOKEN_OF_ONE_NODE', property: TOKENS, defines: [] },
  { mutant: 'RESTARTED_NODES_VOTE_AT_ONCE', property: TOKENS, defines: [] },
  { mutant: 'LATE_ANSWERS_COUNT', property: TOKENS, defines: [] },
  { mutant: 'SLOW_CLOCKS_NOT_TOLD', property: TOKENS, defines: ['APART=4', 'RESTARTS=0'] },
];

(skipped === '' ? describe : describe.skip)(`The model of the tokens of a quorum${skipped}`, () => {
  it.each(PROFILES.filter(({ long }) => isLong || !long))(
    'has tokens that grow, and one holder at a time: $profile',
    async ({ profile, defines }) => {
      const verdict = await check(MODEL, { defines, optimized: true });
      console.log(`${profile}: ${String(verdict.states)} states`);
      expect(verdict).toMatchObject({ errors: 0, violation: undefined, exhaustive: true });
      expect(verdict.states).toBeGreaterThan(1_000);
      if (defines.length === 0) expect(verdict.unreached).toEqual([]);
    },
    600_000,
  );

  it.each(MUTANTS)(
    'fails as $mutant',
    async ({ mutant, property, defines }) => {
      const { errors, violation } = await check(MODEL, { defines: [mutant, ...defines] });
      expect({ errors, violation }).toEqual({ errors: 1, violation: expect.stringMatching(property) });
    },
    600_000,
  );
});
