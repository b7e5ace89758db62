import { describe, expect, it } from '@jest/globals';
import { check, skipped } from '../spin.js';

const MODEL = 'charter/charter.pml';

(skipped === '' ? describe : describe.skip)(`The model of the charter of a quorum${skipped}`, () => {
  it('has one holder at a time, whichever nodes restart during and after a raise of the longest lease', async () => {
    const verdict = await check(MODEL);
    expect(verdict).toMatchObject({ errors: 0, violation: undefined, exhaustive: true, unreached: [] });
    expect(verdict.states).toBeGreaterThan(1_000);
  }, 600_000);

  it.each(['RAISED_BY_A_MAJORITY', 'NUMBERS_OF_THE_NODE_ITSELF', 'RESTARTED_NODES_VOTE_AT_ONCE'])(
    'fails as %s',
    async (mutant) => {
      const { errors, violation } = await check(MODEL, { defines: [mutant] });
      expect({ errors, violation }).toEqual({ errors: 1, violation: expect.stringMatching(/left==0/) });
    },
    600_000,
  );
});
