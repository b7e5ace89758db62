import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LockKindMismatchError, type LockService } from '../../../lib/index.js';
import { Stage, until } from '../../pitfalls/stage.js';
import { now, overlaps, tokensGrow } from '../../scenarios/history.js';
import { type HoldRecord, Worker } from '../../support/worker.js';
import { FAIR, type Kept, type Kind, lockOf, PLAIN, queued, READ, semaphore, take, WRITE } from '../kinds.js';
import { queueOf } from '../../support/keys.js';

const stage = Stage.set();
const PATIENT = { waitTime: Infinity };
/** ms that a grant lasts which nobody confirms. */
const CLAIM = 1_000;
/** Ends before a lease does, so that what waits for one fails. The number of claims is judged in virtual time. */
const IMPATIENT = { waitTime: 20_000 };

/** Workers that stand in the queue in this order. */
async function line(service: LockService, name: string, kinds: readonly Kind[]) {
  const waiters: { worker: Worker; lease: Promise<Kept> }[] = [];
  for (const [n, worker] of (await Promise.all(kinds.map(() => stage.worker()))).entries()) {
    waiters.push({ worker, lease: take(worker, name, kinds[n]!, PATIENT) });
    await queued(service, name, waiters.length);
  }
  return waiters;
}

/** Redis has noticed who is gone: what is sent to a process before that is a hand-over to one that has stopped. */
const gone = (listening: number) =>
  until(async () => (await stage.redis.pubsub('CHANNELS', 'lock_queue*')).length === listening);

describe('kill -9', () => {
  it.each([
    ['the head waiter', [0]],
    ['a waiter in the middle', [1]],
    ['all waiters but the last', [0, 1]],
  ])('of %s: the others get their turn at once', async (_, victims) => {
    const service = stage.service();
    const holder = await service.getFairLock('line').acquire();
    const waiters = await line(service, 'line', [FAIR, FAIR, FAIR]);
    await Promise.all(victims.map((victim) => waiters[victim]!.worker.kill()));
    await gone(1 + waiters.length - victims.length);
    await holder.release();
    for (const [n, { worker, lease }] of waiters.entries()) {
      if (victims.includes(n)) continue;
      await worker.call('release', (await lease).id);
    }
    expect(await service.inspect('line')).toBeNull();
  });

  it.each<[string, Kind]>([
    ['plain', PLAIN],
    ['fair', FAIR],
    ['write', WRITE],
    ['semaphore', semaphore(1)],
  ])('of the holder, %s: the next gets it when the lease is over', async (name, kind) => {
    const service = stage.service();
    const worker = await stage.worker({ leaseTime: 3_000 });
    const killed = await take(worker, name, kind);
    await worker.kill();
    const lease = await lockOf(service, name, kind).acquire(IMPATIENT);
    expect(lease.fencingToken).toBeGreaterThan(killed.fencingToken);
    await lease.release();
  });

  it.each<[string, Kind]>([
    ['the same kind', FAIR],
    ['another kind', semaphore(2)],
    ['the plain lock', PLAIN],
  ])('of all processes: when the lease is over, the name is free for %s', async (_, kind) => {
    const service = stage.service();
    const worker = await stage.worker({ leaseTime: 3_000 });
    await take(worker, 'all', FAIR);
    for (let n = 0; n < 3; n++) void take(worker, 'all', FAIR, PATIENT);
    await queued(service, 'all', 3);
    await worker.kill();
    await until(async () => (await stage.ttl('all')) === -2);
    const lease = await lockOf(service, 'all', kind).acquire({ waitTime: 60_000 });
    expect(await service.inspect('all')).toMatchObject({ holders: [{ owner: lease.owner }] });
    await lease.release();
    expect(await lockOf(service, 'all', kind).isLocked()).toBe(false);
  });

  it.each<[string, string, Kind, Kind, Kind]>([
    ['a fair lock', 'the plain lock', FAIR, PLAIN, semaphore(2)],
    ['a writer', 'the plain lock', WRITE, PLAIN, FAIR],
    ['the plain lock', 'a fair lock', PLAIN, FAIR, semaphore(2)],
    ['the plain lock', 'a permit', PLAIN, semaphore(1), FAIR],
  ])(
    'of the holder: a waiter for %s keeps its entry when %s of the same name is given up',
    async (_, __, kind, former, third) => {
      const name = 'kept place';
      const waiting = () => stage.redis.zcard(queueOf(`lock:${name}`));
      const lost = await lockOf(stage.service(), name, former).acquire();
      await stage.redis.del(`lock:${name}`);
      const others = stage.service();
      await lockOf(others, name, kind).acquire();
      const waiter = await stage.worker();
      void take(waiter, name, kind, PATIENT).catch(() => undefined);
      await until(async () => (await waiting()) === 1);
      // It hears of nothing, so that its place is not taken again before it is counted.
      waiter.freeze();
      await stage.redis.del(`lock:${name}`);
      await lost.release();
      expect(await waiting()).toBe(1);
      await expect(lockOf(stage.service(), name, third).tryAcquire()).rejects.toThrow(LockKindMismatchError);
    },
  );

  it('of a reader: the writer gets in at its deadline, whatever other readers renew (pitfall 29)', async () => {
    const service = stage.service({ leaseTime: 3_000 });
    const dead = await stage.worker({ leaseTime: 5_000 });
    const reader = await lockOf(service, 'read', READ).acquire();
    await take(dead, 'read', READ);
    await dead.kill();
    const waiting = lockOf(service, 'read', WRITE).acquire(PATIENT);
    await until(async () => (await service.inspect('read'))?.holders.length === 1);
    expect(reader.held).toBe(true);
    await reader.release();
    await (await waiting).release();
  });
});

describe('SIGSTOP', () => {
  it('of the head waiter: the next waits for one claim; woken up, the first does not believe that it holds it', async () => {
    const service = stage.service();
    const holder = await service.getFairLock('stopped').acquire();
    const [stopped, next] = await line(service, 'stopped', [FAIR, FAIR]);
    // What has just arrived gets its whole lease, as a holder that stops.
    await sleep(CLAIM + 100);
    stopped!.worker.freeze();
    await holder.release();
    const second = await next!.lease;
    let believes = false;
    void stopped!.lease.then(() => (believes = true));
    stopped!.worker.thaw();
    // It is back in its place.
    await queued(service, 'stopped', 1);
    await sleep(300);
    expect(believes).toBe(false);
    expect((await service.inspect('stopped'))?.holders).toMatchObject([{ owner: second.owner }]);
    await next!.worker.call('release', second.id);
    const first = await stopped!.lease;
    expect(first.fencingToken).toBeGreaterThan(second.fencingToken);
    expect(await stopped!.worker.call('state', first.id)).toMatchObject({ held: true });
  });
});

describe('lost messages', () => {
  it('of a whole lease that has just been granted: its waiter finds out a claim after it has arrived', async () => {
    const proxy = await stage.proxy();
    const [holding, deaf] = [stage.service(), stage.service({ connection: proxy.url })];
    for (let tries = 10; ; tries--) {
      const holder = await holding.getFairLock('whole').acquire();
      proxy.dropMessages(true);
      const impatient = new AbortController();
      const waiting = deaf.getFairLock('whole').acquire({ ...IMPATIENT, signal: impatient.signal });
      await queued(holding, 'whole', 1);
      const next = holding.getFairLock('whole').acquire(PATIENT);
      await queued(holding, 'whole', 2);
      await holder.release();
      // The waiter had not just arrived, because this machine was busy.
      if ((await stage.ttl('whole')) <= CLAIM && tries > 0) {
        impatient.abort();
        await expect(waiting).rejects.toThrow();
        await (await next).release();
        continue;
      }
      await (await waiting).release();
      await (await next).release();
      break;
    }
  });

  it.each([
    ['deaf for a moment keeps its place', false, ['1', '2', '3']],
    ['cut off, and therefore passed over, is back in its place', true, ['2', '1', '3']],
  ])('a waiter that is %s', async (_, passedOver, order) => {
    const proxy = await stage.proxy();
    const holding = stage.service();
    const [x, y] = [stage.service({ connection: proxy.url }), stage.service()];
    const holder = await holding.getFairLock('place').acquire();
    const log: string[] = [];
    const waiters = [];
    for (const [label, service] of [
      ['1', x],
      ['2', y],
      ['3', y],
    ] as const) {
      waiters.push(
        service.getFairLock('place').using(PATIENT, async () => {
          log.push(label);
          if (passedOver && label === '2') {
            proxy.refuse(false);
            await queued(holding, 'place', 2);
          }
        }),
      );
      await queued(holding, 'place', waiters.length);
    }
    const listeners = async () => (await stage.redis.pubsub('CHANNELS', 'lock_queue*')).length;
    if (passedOver) {
      proxy.refuse(true);
      proxy.cut();
      // The holder's process and the other waiter's.
      await until(async () => (await listeners()) === 2);
    } else {
      await stage.redis.client('KILL', 'TYPE', 'PUBSUB');
      await until(async () => (await listeners()) === 3);
    }
    await holder.release();
    await Promise.all(waiters);
    expect(log).toEqual(order);
  });
});

describe('A store that has gone back by a moment', () => {
  it('calls up owners that have left: they do not keep the lock from the living', async () => {
    const service = stage.service();
    const holder = await service.getFairLock('back').acquire();
    const waiters = Array.from({ length: 6 }, () =>
      service.getFairLock('back').using(PATIENT, () => undefined),
    );
    await queued(service, 'back', waiters.length);
    const queue = queueOf('lock:back');
    const before = await stage.redis.zrange(queue, '0', '-1', 'WITHSCORES');
    await holder.release();
    await Promise.all(waiters);

    const again = await service.getFairLock('back').acquire();
    for (let n = 0; n < before.length; n += 2)
      await stage.redis.zadd(queue, String(before[n + 1]), String(before[n]));
    const next = service.getFairLock('back').acquire(IMPATIENT);
    await queued(service, 'back', waiters.length + 1);
    await again.release();
    await (await next).release();
  });
});

describe('A clock that is 10 minutes off', () => {
  let all: Worker[] = [];
  afterEach(async () => {
    await Promise.all(all.map((worker) => worker.kill()));
  });

  const skewed = (ms: number) =>
    `const Right = Date;
     let offset = ${String(ms)};
     globalThis.stepClock = (ms) => void (offset += ms);
     globalThis.Date = class extends Right {
       constructor(...given) { super(...(given.length > 0 ? given : [Right.now() + offset])); }
       static now() { return Right.now() + offset; }
     };`;

  it('changes nothing: not the order, not the exclusion, not the lease of a killed holder', async () => {
    const url = stage.server.url;
    all = await Promise.all(
      [600_000, -600_000, 0].map((ms) =>
        Worker.start({ url, service: { leaseTime: 6_000 }, preload: skewed(ms) }),
      ),
    );
    const service = stage.service();
    const records = (
      await Promise.all(
        all.map((worker) => worker.call<HoldRecord[]>('race', 'skewed', 10, { ...FAIR, ...PATIENT }, 2)),
      )
    ).flat();
    expect(overlaps(records)).toEqual([]);
    expect(tokensGrow(records)).toBe(true);
    expect(records.some(({ lost }) => lost)).toBe(false);

    const [fast, slow, right] = all;
    for (const worker of [fast!, slow!]) {
      const holder = await service.getFairLock('claim').acquire();
      const waiting = take(worker, 'claim', FAIR);
      await queued(service, 'claim', 1);
      await holder.release();
      // A grant that was taken for a younger one would promise more.
      const { id, remainingTime } = await waiting;
      expect(remainingTime).toBeLessThanOrEqual(6_000);
      await worker.call('release', id);
    }
    await take(fast!, 'killed', FAIR, { leaseTime: 6_000 });
    const waiting = [slow!, right!].map((worker) =>
      worker.call<HoldRecord>('holdFor', 'killed', { ...FAIR, ...PATIENT }, 0),
    );
    await queued(service, 'killed', 2);
    const killed = now();
    await fast!.kill();
    for (const { granted } of await Promise.all(waiting)) {
      expect(granted - killed).toBeGreaterThan(500);
    }
  });
});
