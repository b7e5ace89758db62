import { describe, expect, it } from '@jest/globals';
import { CLAIM, QUEUE_ENTRY_LIFE, type AcquireReply } from '../../lib/store/index.js';
import { inWorld, type ProcessOptions, type Stage } from '../world/index.js';
import { ScriptedPort } from '../world/port.js';

/** How a service asks its store for a lock, and when it asks again. The store answers as each test has written it. */

const GRANT: AcquireReply = { granted: true, fencingToken: 7 };
const busy = (retryAfter: number, rest: object = {}): AcquireReply => ({
  granted: false,
  retryAfter,
  holder: 'other:1',
  ...rest,
});
/** How often a store is asked from which no messages come, ms. */
const POLL = 500;
const PATIENT = { waitTime: Infinity };

const scripted = (
  title: string,
  script: (port: ScriptedPort, stage: Stage) => Promise<unknown>,
  options: ProcessOptions & { readonly hasQueues?: boolean } = {},
) => {
  it(title, () => inWorld(1, (stage) => script(new ScriptedPort(stage, options), stage)));
};

/** Moments with room for clocks that go wrong, for timers that are late, and for the random part of a pause. */
function expectTimes(port: ScriptedPort, least: readonly number[], spread = 22): void {
  const { times } = port;
  expect(times).toHaveLength(least.length);
  for (const [index, time] of least.entries()) {
    expect(times[index]).toBeGreaterThanOrEqual(time * 0.995);
    expect(times[index]).toBeLessThanOrEqual(time * 1.005 + spread);
  }
}
const ownersOf = ({ asked }: ScriptedPort) => asked.map(({ request }) => request.owner);
const isPending = (promise: Promise<unknown>, { pass }: Stage) =>
  Promise.race([promise.then(() => false), pass(0).then(() => true)]);

describe('A request', () => {
  scripted('is repeated by the same owner, which keeps its entry and its arrival', async (port, stage) => {
    port.replies = [() => busy(100, { arrival: 5 }), () => busy(100), () => GRANT];
    // The subscription to messages is there, so that the first request takes an entry.
    await stage.pass(1);
    const lease = await port.locks.getFairLock('a').acquire(PATIENT);
    expect(new Set(ownersOf(port))).toEqual(new Set([lease.owner]));
    expect(port.asked.map(({ request }) => request.queue?.entry?.arrival)).toEqual([undefined, 5, 5]);
    expectTimes(port, [0, 101, 202], 2 * 22);
  });

  scripted('comes when a claim could have been lost, and then once per lease', async (port, stage) => {
    port.replies = [() => busy(Infinity), () => busy(Infinity)];
    const stop = new AbortController();
    const waiting = port.locks.getFairLock('a').acquire({ ...PATIENT, signal: stop.signal });
    waiting.catch(() => undefined);
    await stage.pass(32_000);
    expectTimes(port, [0, CLAIM * 1.01, CLAIM * 1.01 + 30_001]);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  });

  scripted(
    'takes no entry while no messages come, is repeated, and leaves nothing to give up',
    async (port, stage) => {
      port.listens = () => Promise.resolve(false);
      const waiting = port.locks.acquire('a', { waitTime: 2.2 * POLL });
      await expect(waiting).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(port.asked.map(({ request }) => request.queue?.entry)).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
      expectTimes(port, [0, POLL, 2 * POLL], 60);
      await stage.pass(1_000);
      expect(port.released).toEqual([]);
    },
  );

  scripted('is repeated as soon as messages come, and takes an entry', async (port, stage) => {
    void port.locks.acquire('a', PATIENT);
    await stage.pass(20);
    expect(port.asked.map(({ request }) => request.queue?.entry !== undefined)).toEqual([false, true]);
  });
});

describe('A message', () => {
  const granted = (port: ScriptedPort, part: object = {}) => {
    port.tell({
      type: 'granted',
      owner: ownersOf(port)[0]!,
      fencingToken: 9,
      grantedAt: port.process.clock,
      leaseTime: 30_000,
      rivals: 'queued',
      ...part,
    });
  };
  /** @returns the wait of a caller whose entry is in the queue */
  const queued = async (port: ScriptedPort, { until }: Stage) => {
    const waiting = port.locks.acquire('a', PATIENT);
    await until(() => port.asked.some(({ request }) => request.queue?.entry !== undefined));
    return waitingFor(waiting, port.asked.length);
  };
  const waitingFor = <T>(waiting: Promise<T>, asked: number) => ({ waiting, asked });

  scripted('that grants a whole lease ends the wait, without a request', async (port, stage) => {
    const { waiting, asked } = await queued(port, stage);
    granted(port);
    expect(await waiting).toMatchObject({ held: true, fencingToken: 9 });
    await stage.pass(60_000);
    expect(port.asked).toHaveLength(asked);
  });

  scripted('that grants a claim is confirmed by a request, at once', async (port, stage) => {
    const { waiting, asked } = await queued(port, stage);
    port.replies = [port.after(10, GRANT)];
    granted(port, { leaseTime: CLAIM });
    await stage.pass(1);
    expect([port.asked.length, await isPending(waiting, stage)]).toEqual([asked + 1, true]);
    expect(await waiting).toMatchObject({ fencingToken: 7 });
  });

  scripted('that comes late is a reason to ask, and no grant', async (port, stage) => {
    const { waiting, asked } = await queued(port, stage);
    await stage.pass(CLAIM / 2);
    port.replies = [port.after(10, GRANT)];
    granted(port, { grantedAt: port.process.clock - CLAIM });
    await stage.pass(1);
    expect([port.asked.length, await isPending(waiting, stage)]).toEqual([asked + 1, true]);
    await waiting;
  });

  scripted(
    'that overtakes an answer is the grant, and the request is taken back with the hold',
    async (port, stage) => {
      const { waiting } = await queued(port, stage);
      port.replies = [() => stage.pass(50).then(() => port.failing()())];
      port.tell({ type: 'missed' });
      await stage.pass(1);
      granted(port);
      const lease = await waiting;
      await stage.pass(2_000);
      expect([lease.held, port.released]).toEqual([true, []]);
      port.state = 'deleted';
      await lease.release();
      // The request may arrive after the release: so that is sent until its lease would have ended.
      await stage.until(() => port.released.length > 1);
    },
  );

  scripted('that names a moment moves the next request there', async (port, stage) => {
    const { asked } = await queued(port, stage);
    const owner = ownersOf(port)[0]!;
    const at = stage.now();
    port.tell({ type: 'next', owner, within: 50 });
    await stage.until(() => port.asked.length > asked);
    expect(stage.now() - at).toBeGreaterThan(49);
    expect(stage.now() - at).toBeLessThan(75);
    port.tell({ type: 'missed', owner });
    await stage.pass(1);
    expect(port.asked).toHaveLength(asked + 2);
  });
});

describe('A caller that leaves', () => {
  scripted('gives up its entry, once, by the owner and the lease that it asked for', async (port, stage) => {
    const stop = new AbortController();
    port.replies = [() => busy(90_000), () => busy(90_000)];
    const waiting = port.locks.acquire('a', { ...PATIENT, signal: stop.signal });
    waiting.catch(() => undefined);
    await stage.pass(20);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await stage.pass(QUEUE_ENTRY_LIFE);
    const owner = ownersOf(port).at(-1);
    expect(port.released.map(({ request }) => request)).toMatchObject([
      { name: 'a', owner, leaseTime: 30_000 },
    ]);
    expect(port.asked).toHaveLength(2);
  });

  scripted('before it has asked sends nothing', async (port) => {
    const waiting = port.locks.acquire('a', { signal: AbortSignal.abort() });
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    expect([port.asked, port.released]).toEqual([[], []]);
  });

  scripted('whose caller left leaves its place in the queue to the next caller', async (port, stage) => {
    let releasedBefore = -1;
    port.replies = [
      () => busy(100, { arrival: 5 }),
      port.after(50, GRANT),
      () => {
        releasedBefore = port.released.length;
        return busy(100, { arrival: 5 });
      },
      () => ({ ...GRANT, fencingToken: 8 }),
    ];
    await stage.pass(1);
    const stop = new AbortController();
    const leaving = port.locks.acquire('a', { ...PATIENT, signal: stop.signal });
    leaving.catch(() => undefined);
    const next = port.locks.acquire('a', { ...PATIENT, leaseTime: 5_000, renew: true });
    await stage.until(() => port.asked.length === 2);
    stop.abort();
    expect(await next).toMatchObject({ held: true, fencingToken: 8 });
    expect(port.asked.map(({ request }) => request.queue?.entry?.arrival)).toEqual([undefined, 5, 5, 5]);
    // Else the release would give the lock to a process that came later.
    expect(releasedBefore).toBe(0);
    expect(port.released.map(({ request }) => request.owner)).toEqual([ownersOf(port)[0]]);
  });

  it.each([true, false])(
    'leaves a grant to the next caller that wants another lease: queues %s',
    (hasQueues) =>
      inWorld(3, async (stage) => {
        const port = new ScriptedPort(stage, { hasQueues });
        const stop = new AbortController();
        port.replies = [port.after(50, GRANT), () => ({ ...GRANT, fencingToken: 8 })];
        const leaving = port.locks.acquire('a', { ...PATIENT, signal: stop.signal });
        leaving.catch(() => undefined);
        const next = port.locks.acquire('a', { ...PATIENT, leaseTime: 5_000, renew: true });
        await stage.pass(20);
        stop.abort();
        const lease = await next;
        expect(lease).toMatchObject({ held: true, fencingToken: 8 });
        expect(port.asked.map(({ request }) => request.leaseTime)).toEqual([30_000, 5_000]);
        const [first, second] = port.asked.map(({ request }) => request);
        // The store shortens no hold, so it is given back, and another owner asks.
        expect(second?.owner).not.toBe(first?.owner);
        expect(port.released.map(({ request }) => request.owner)).toEqual([first?.owner]);
      }),
  );
});

describe('A store without queues', () => {
  scripted(
    'is asked by a new owner each time, and again as soon as releases are heard of',
    async (port, stage) => {
      port.replies = [() => busy(600_000), () => busy(600_000), () => GRANT];
      const waiting = port.locks.acquire('a', PATIENT);
      await stage.pass(20);
      // The release may have come between the request and the subscription.
      expect(port.asked).toHaveLength(2);
      port.tell({ type: 'missed' });
      const lease = await waiting;
      expect(new Set(ownersOf(port)).size).toBe(3);
      expect([lease.owner, port.released]).toEqual([ownersOf(port)[2], []]);
    },
    { hasQueues: false },
  );

  scripted(
    'that does not answer gets each request taken back, and another owner asks soon',
    async (port, stage) => {
      port.replies = [port.failing(), () => GRANT];
      const lease = await port.locks.acquire('a', PATIENT);
      expect(new Set(ownersOf(port)).size).toBe(2);
      expectTimes(port, [0, 25], 30);
      await stage.pass(1_000);
      expect(new Set(port.released.map(({ request }) => request.owner))).toEqual(
        new Set([ownersOf(port)[0]]),
      );
      expect(lease.held).toBe(true);
    },
    { hasQueues: false },
  );
});

describe('A request that fails', () => {
  scripted('is sent again by the same owner, after pauses that double', async (port) => {
    port.replies = [port.failing(), port.failing(), port.failing(), () => GRANT];
    const lease = await port.locks.acquire('a', PATIENT);
    expect(new Set(ownersOf(port))).toEqual(new Set([lease.owner]));
    const pauses = port.times.slice(1).map((time, index) => time - port.times[index]!);
    for (const [index, pause] of pauses.entries()) {
      expect(pause).toBeGreaterThanOrEqual(25 * 2 ** index * 0.99);
      expect(pause).toBeLessThanOrEqual(50 * 2 ** index * 1.01 + 3);
    }
  });

  scripted(
    'is repeated at its release, unless the store has certainly not carried it out',
    async (port, stage) => {
      port.state = 'deleted';
      for (const effect of ['unknown', 'refused'] as const) {
        port.released.length = 0;
        port.replies = [port.failing(effect), () => GRANT];
        await (await port.locks.acquire(effect, PATIENT)).release();
        await stage.pass(2_000);
        const sent = port.released.filter(({ request }) => request.name === effect).length;
        expect(sent > 1).toBe(effect === 'unknown');
      }
    },
  );

  scripted(
    'ends the wait where a second try cannot help, and else at the end of the wait time',
    async (port, stage) => {
      port.replies = [port.failing('refused', true)];
      await expect(port.locks.acquire('a', PATIENT)).rejects.toMatchObject({ permanent: true });
      port.replies = [() => Promise.reject(new TypeError('broken'))];
      await expect(port.locks.acquire('b', PATIENT)).rejects.toThrow('broken');
      const asked = stage.now();
      port.replies = Array.from({ length: 100 }, () => port.failing('refused'));
      const waiting = port.locks.acquire('c', { waitTime: 700 });
      await expect(waiting).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'refused' });
      expect(stage.now() - asked).toBeGreaterThan(690);
    },
  );
});

describe('A lock that others have outside of the queue', () => {
  scripted(
    'needs the subscription to releases: the store is polled until that is there',
    async (port, stage) => {
      const listen = port.listens;
      port.replies = Array.from({ length: 10 }, () => () => busy(60_000, { listen: true }));
      void port.locks.acquire('a', PATIENT);
      await stage.pass(20);
      port.listens = () => Promise.resolve(false);
      const { length } = port.asked;
      await stage.pass(100);
      expect(port.asked.length).toBe(length);
      port.listens = listen;
    },
  );
});

describe('The acquisitions of a process', () => {
  scripted('each look again when messages may have been missed', async (port, stage) => {
    for (const name of ['a', 'b']) void port.locks.acquire(name, PATIENT);
    await stage.pass(20);
    const { length } = port.asked;
    port.tell({ type: 'missed' });
    await stage.pass(1);
    const again = port.asked.slice(length).map(({ request }) => request.name);
    expect(again).toEqual(['a', 'b']);
    port.tell({ type: 'missed', owner: 'unknown:1' });
    await stage.pass(1);
    expect(port.asked).toHaveLength(length + 2);
  });

  scripted('that have left give back what they are granted later', async (port, stage) => {
    const stop = new AbortController();
    const waiting = port.locks.acquire('a', { ...PATIENT, signal: stop.signal });
    waiting.catch(() => undefined);
    await stage.pass(20);
    stop.abort();
    await stage.pass(1);
    const owner = ownersOf(port).at(-1)!;
    const grant = {
      type: 'granted',
      fencingToken: 9,
      grantedAt: port.process.clock,
      leaseTime: 30_000,
    } as const;
    port.tell({ ...grant, owner: 'unknown:1' });
    expect(port.released).toHaveLength(1);
    port.tell({ ...grant, owner });
    expect(port.released.map(({ request }) => request.owner)).toEqual([owner, owner]);
  });

  scripted('tell what the process is called once they last for a second', async (port, stage) => {
    void port.locks.acquire('a', PATIENT);
    await stage.pass(900);
    const [client = ''] = ownersOf(port)[0]!.split(':');
    expect(await port.store.labels?.find(client)).toBeUndefined();
    await stage.pass(200);
    expect(await port.store.labels?.find(client)).toBe('process 1');
  });

  scripted('give back a grant whose token is older than that of such a hold', async (port, stage) => {
    port.replies = [() => GRANT, () => ({ ...GRANT, fencingToken: 6 })];
    const first = await port.locks.getFairLock('a').acquire();
    const second = port.locks.getFairLock('a').tryAcquire({ waitTime: 100 });
    second.catch(() => undefined);
    await stage.pass(200);
    expect(first.held).toBe(true);
    expect(port.released.map(({ request }) => request.fencingToken)).toContain(6);
  });
});

it.each([
  ['three at each renewal', {}],
  ['three at each look, if they are not renewed', { leaseTime: 12_000 }],
])('sends few commands for 250 leases: %s', (_, options) =>
  inWorld(250, async ({ process, server, at }) => {
    const { locks } = process({ leaseTime: 12_000 });
    const names = Array.from({ length: 250 }, (__, n) => `held:${String(n)}`);
    const leases = await Promise.all(names.map((name) => locks.acquire(name, options)));
    for (const third of [4_000, 8_000]) {
      await at(third - 100);
      const { commands } = server;
      await at(third + 400);
      expect(server.commands - commands).toBe(3);
    }
    expect(leases.every((lease) => lease.held)).toBe(true);
  }),
);

it('renews a lease at its own third, although the timer of an earlier one is still armed', () =>
  inWorld(8, async ({ process, server, at }) => {
    const { locks } = process({ leaseTime: 12_000 });
    await (await locks.acquire('first')).release();
    await at(900);
    await locks.acquire('second');
    await at(2_500);
    const { commands } = server;
    await at(4_800);
    expect(server.commands - commands).toBe(0);
    await at(5_100);
    expect(server.commands - commands).toBe(1);
  }));
