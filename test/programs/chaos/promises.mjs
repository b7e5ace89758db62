// What a process of a chaos run does besides taking locks: it takes part in an election, sends leases on their way and
// resumes those of others, and runs work once per period. See checkers/promises.ts for what the lines say.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** ms; the checker is told with each success. */
const PERIOD = 400;
const EXPECTED = ['LOCK_LOST', 'LOCK_UNAVAILABLE', 'LOCK_TIMEOUT', 'LOCK_CLOSED', 'LOCK_ABORTED'];

/** @returns when it has come to its end, after `isOver` has said so */
export function keepPromises({ service, resource, note, now, between, chance, isOver }) {
  const expected = (error) => {
    if (!EXPECTED.includes(error.code)) note('fault', undefined, { error: String(error.stack ?? error) });
  };

  async function elections() {
    const stop = new AbortController();
    const election = service.getElection('leader');
    const term = async ({ number, signal }) => {
      const end = now() + between(100, 1_500);
      while (!signal.aborted) {
        const before = now();
        if (election.isLeader()) note('told', undefined, { promise: 'election', number, before });
        if (now() > end) void election.resign();
        await sleep(5);
      }
    };
    const run = election.run(term, { signal: stop.signal }).catch(expected);
    while (!isOver()) await sleep(20);
    stop.abort();
    await run;
  }

  /** One lease, acquired or resumed, which goes on its way again or is released. */
  async function journey() {
    const last = chance(0.8) ? await resource.lindex('tickets', -1).catch(() => null) : null;
    const lease =
      last === null ? await service.tryAcquire('travels', { waitTime: 200 }) : await service.resume(last);
    if (lease === null) return;
    if (last !== null) {
      const ticket = createHash('sha1').update(last).digest('hex').slice(0, 12);
      note('resumed', undefined, { ticket, token: lease.fencingToken });
    }
    for (const end = now() + between(0, 100); now() < end; await sleep(5)) {
      const before = now();
      if (lease.held) note('told', undefined, { promise: 'lease', number: lease.fencingToken, before });
    }
    if (!chance(0.8)) return await lease.release();
    await resource
      .rpush('tickets', await lease.handOver({ within: between(300, 900) }))
      .catch(() => undefined);
  }

  async function period() {
    const run = {};
    const { ran } = await service.once('period', { period: PERIOD, waitTime: 1_000 }, async () => {
      run.begun = now();
      await sleep(chance(0.1) ? between(300, 900) : between(0, 30));
      if (chance(0.2)) throw Object.assign(new Error('the work has failed'), { code: 'LOCK_ABORTED' });
      run.worked = now();
    });
    if (ran) note('success', undefined, { ...run, period: PERIOD });
  }

  const again = async (work, pause) => {
    while (!isOver()) {
      await work().catch(expected);
      await sleep(between(0, pause));
    }
  };
  // On a cluster a killed process leaves an entry that only a live waiter behind it removes before its end.
  const leaveNoEntry = (name) =>
    service
      .acquire(name, { waitTime: 10_000 })
      .then((lease) => lease.release())
      .catch(expected);
  return Promise.all([elections(), again(journey, 40), again(journey, 40), again(period, 60)]).then(() =>
    Promise.all(['leader', 'travels', 'period'].map(leaveNoEntry)),
  );
}
