/** ms: long enough to take most before the first of them is renewed. */
const LEASE = 90_000;

/** A process with so many holds that nothing may look at all of them at one go. */
const holds = {
  id: 'many-holds',
  title: '300,000 held leases: their questions, and one round of renewals',
  contenders: ['ours'],
  rounds: 1,
  stage: { fresh: true, ttl: LEASE },
  renews: true,
  figures: ['leasesCall', 'healthCall', 'longestTurn', 'held'],
  quick: [],
  async measure(cast) {
    const begun = performance.now();
    await cast.play('hold', { step: 'take', name: 'many', leases: 300_000 });
    // Until all have been renewed once.
    const time = LEASE / 3 + 10_000 - Math.min(LEASE / 3, performance.now() - begun);
    const [{ leases, health, held, longest }] = await cast.play('many-holds', { time });
    return { leasesCall: leases, healthCall: health, longestTurn: longest, held };
  },
};

/** The last of many waiters in one process. */
const waiters = (kind, title) => ({
  id: `many-waiters-${kind}`,
  title: `${title}: each of the last 500 of 10,000 waiters in one process`,
  contenders: ['ours'],
  rounds: 3,
  stage: { fresh: true },
  figures: ['joined'],
  quick: [],
  async measure(cast) {
    const [{ joined }] = await cast.play('many-waiters', { kind, waiters: 10_000, last: 500 });
    return { joined };
  },
});

export const many = [holds, waiters('plain', 'The plain lock'), waiters('fair', 'The fair lock')];
