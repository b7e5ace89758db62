import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type NodeAnswer,
  count,
  countWithout,
  decide,
  outcomeOf,
  tally,
  type Vote,
} from '../../../lib/stores/quorum/ballot.js';
import { quorumOf } from '../../../lib/stores/quorum/member.js';

type TestVote = Vote<number, number>;
type Cast = readonly (NodeAnswer<TestVote> | undefined)[];

const VOTES: readonly TestVote[] = [
  { outcome: 'granted', grant: 1 },
  { outcome: 'taken', refusal: 1 },
  { outcome: 'quarantined' },
  { outcome: 'error', error: new Error('gone') },
  { outcome: 'timeout', error: new Error('silent') },
];
const [GRANTED, TAKEN, QUARANTINED, ERROR] = VOTES as [TestVote, TestVote, TestVote, TestVote];

const castOf = (votes: readonly (TestVote | undefined)[]): Cast =>
  votes.map((value) => (value === undefined ? undefined : { value }));
const counted = (votes: readonly (TestVote | undefined)[]) => count(castOf(votes));

/** All votes of 3, 5 or 7 members, and the order in which they come in. */
const elections = fc.constantFrom(3, 5, 7).chain((members) =>
  fc.record({
    votes: fc.array(fc.constantFrom(...VOTES), { minLength: members, maxLength: members }),
    order: fc.shuffledSubarray([...Array(members).keys()], { minLength: members }),
  }),
);

/** Every decision there is after each further vote, the last being the final one. */
function* decisions({ votes, order }: { votes: TestVote[]; order: number[] }) {
  const known: (TestVote | undefined)[] = votes.map(() => undefined);
  for (const index of order) {
    known[index] = votes[index];
    yield { known: [...known], result: counted(known) };
  }
}

describe('count', () => {
  it('decides once all have voted, and grants with a majority of grants', () => {
    fc.assert(
      fc.property(elections, ({ votes }) => {
        const grants = votes.filter((vote) => vote === GRANTED).length;
        const result = counted(votes);
        expect(result).toBeDefined();
        expect(result?.outcome === 'granted').toBe(grants >= quorumOf(votes.length));
      }),
    );
  });

  it('grants early exactly where all votes would grant', () => {
    fc.assert(
      fc.property(elections, (election) => {
        const final = counted(election.votes);
        for (const { result } of decisions(election)) {
          if (result !== undefined) expect(result.outcome === 'granted').toBe(final?.outcome === 'granted');
        }
      }),
    );
  });

  it('waits only for members that can change what is said', () => {
    fc.assert(
      fc.property(elections, (election) => {
        for (const { known, result } of decisions(election)) {
          const open = known.flatMap((vote, index) => (vote === undefined ? [index] : []));
          // What it would be if those who are open all said the same.
          const ends = VOTES.map((vote) =>
            counted(known.map((one, index) => (open.includes(index) ? vote : one))),
          );
          const outcomes = new Set(ends.map((end) => end?.outcome));
          if (result === undefined) expect(outcomes.size).toBeGreaterThan(1);
        }
      }),
    );
  });

  it('says taken only where a majority has answered, and a member has refused', () => {
    fc.assert(
      fc.property(elections, ({ votes }) => {
        const [grants, refusals] = [GRANTED, TAKEN].map((one) => votes.filter((vote) => vote === one).length);
        const answered = grants! + refusals! >= quorumOf(votes.length);
        expect(counted(votes)?.outcome === 'taken').toBe(
          answered && refusals! > 0 && grants! < quorumOf(votes.length),
        );
      }),
    );
  });

  it('is undecided where too few have said anything, or would count', () => {
    expect(counted([GRANTED, QUARANTINED, ERROR, ERROR, undefined])).toEqual({ outcome: 'undecided' });
    expect(counted([undefined, ERROR, ERROR, ERROR, undefined])).toEqual({ outcome: 'undecided' });
  });

  it('gives the grants by member, and the refusals', () => {
    expect(counted([GRANTED, undefined, GRANTED])).toEqual({
      outcome: 'granted',
      grants: new Map([
        [0, 1],
        [2, 1],
      ]),
    });
    expect(counted([GRANTED, TAKEN, TAKEN])).toEqual({ outcome: 'taken', refusals: [1, 1], grants: 1 });
  });

  it('counts a rejected vote as none', () => {
    const rejected: Cast = [{ error: new Error() }, { error: new Error() }, { value: GRANTED }];
    expect(count(rejected)?.outcome).toBe('undecided');
  });
});

describe('countWithout', () => {
  const without = (...votes: (TestVote | undefined)[]) => countWithout(castOf(votes));

  it('is the refusal that the votes of a majority make without the others', () => {
    expect(without(TAKEN, GRANTED, TAKEN, undefined, undefined)).toEqual({
      outcome: 'taken',
      refusals: [1, 1],
      grants: 1,
    });
  });

  it('is none where no member has refused, where too few have voted, or where a majority grants', () => {
    expect(without(GRANTED, GRANTED, undefined, undefined, undefined)).toBeUndefined();
    expect(without(ERROR, QUARANTINED, ERROR, undefined, undefined)).toBeUndefined();
    expect(without(TAKEN, ERROR, GRANTED, undefined, undefined)).toBeUndefined();
    expect(without(TAKEN, GRANTED, GRANTED, GRANTED, undefined)).toBeUndefined();
  });
});

describe('outcomeOf', () => {
  it('is what a member has said, with the reason, and that it was silent', () => {
    expect(outcomeOf('a', GRANTED)).toEqual({ node: 'a', outcome: 'granted' });
    expect(outcomeOf('a', QUARANTINED)).toEqual({ node: 'a', outcome: 'quarantined' });
    expect(outcomeOf('a', ERROR)).toEqual({ node: 'a', ...ERROR });
    expect(outcomeOf('a', undefined)).toEqual({ node: 'a', outcome: 'timeout' });
  });
});

describe('decide', () => {
  const never = new Promise<number>(() => undefined);
  const done = (cast: Parameters<Parameters<typeof decide<number, number>>[1]>[0]) =>
    tally(cast) >= 2 ? tally(cast) : undefined;

  it('is done as soon as it knows, whichever member is still silent', async () => {
    expect(await decide([Promise.resolve(1), never, Promise.resolve(2)], done)).toBe(2);
  });

  it('counts the members that fail', async () => {
    const reason = new Error('gone');
    const cast = await decide([Promise.reject(reason), never], (answers) =>
      answers[0] === undefined ? undefined : answers,
    );
    expect(cast).toEqual([{ error: reason }, undefined]);
  });

  it('keeps its first decision', async () => {
    let asked = 0;
    const answers = [1, 2, 3].map((value) => Promise.resolve(value));
    expect(await decide(answers, () => ++asked)).toBe(1);
  });
});

describe('decide without the members that are absent', () => {
  /** Members that become absent when the test says so. */
  const attendance = () => {
    const absent = new Set<number>();
    const watched: { index: number; callback: () => void; isOver: boolean }[] = [];
    const presence = {
      isAbsent: (index: number) => absent.has(index),
      onAbsence: (index: number, callback: () => void) => {
        const watch = { index, callback, isOver: false };
        watched.push(watch);
        return () => {
          watch.isOver = true;
        };
      },
    };
    const leave = (index: number) => {
      absent.add(index);
      for (const watch of watched) if (watch.index === index && !watch.isOver) watch.callback();
    };
    return { presence, watched, leave };
  };
  const answers = (count: number) => {
    const resolvers: ((value: number) => void)[] = [];
    const promises = Array.from(
      { length: count },
      () => new Promise<number>((resolve) => resolvers.push(resolve)),
    );
    return { promises, say: (index: number) => resolvers[index]?.(index) };
  };
  const all = (cast: readonly (NodeAnswer<number> | undefined)[]) =>
    cast.includes(undefined) ? undefined : tally(cast);
  const settle = () => new Promise(setImmediate);

  it('waits for each member that is not, and watches it once, until there is a decision', async () => {
    const { presence, watched, leave } = attendance();
    const { promises, say } = answers(5);
    const without = (cast: Parameters<typeof all>[0]) => (tally(cast) >= 2 ? tally(cast) : undefined);
    let decided: number | undefined;
    const deciding = decide(promises, all, { presence, without }).then((found) => (decided = found));
    say(0);
    await settle();
    // So few that the others are needed.
    expect(watched).toEqual([]);
    leave(4);
    say(1);
    await settle();
    expect(watched.map(({ index }) => index)).toEqual([2, 3]);
    say(2);
    await settle();
    expect([decided, watched.length]).toEqual([undefined, 2]);
    leave(3);
    await deciding;
    expect([decided, watched.map(({ isOver }) => isOver)]).toEqual([3, [true, true]]);
  });

  it('asks for nothing more once all have answered', async () => {
    const { presence, watched } = attendance();
    const { promises, say } = answers(2);
    const deciding = decide(promises, all, {
      presence,
      without: (cast) => (tally(cast) > 0 ? 7 : undefined),
    });
    say(0);
    await settle();
    expect(watched.map(({ index }) => index)).toEqual([1]);
    say(1);
    expect(await deciding).toBe(2);
  });
});

describe('tally', () => {
  it('counts values that pass, and no errors', () => {
    const cast = [{ value: 1 }, { value: 2 }, undefined, { error: 2 }];
    expect(tally(cast)).toBe(2);
    expect(tally(cast, (value) => value === 2)).toBe(1);
  });
});

describe('quorumOf', () => {
  it('is so many that two majorities always meet', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), (half) => {
        const members = 2 * half + 1;
        expect(2 * quorumOf(members)).toBeGreaterThan(members);
        expect(2 * (quorumOf(members) - 1)).toBeLessThan(members);
      }),
    );
  });
});
