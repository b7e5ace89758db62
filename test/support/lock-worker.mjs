// One process that takes locks with the built package, at the word of its parent; see worker.ts.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockThread } from './lock-thread.mjs';

/** ms on a clock that all processes of this machine share, and that nobody sets. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

const PACKAGE = process.env.LOCK_TEST_PACKAGE ?? 'nestjs-distributed-lock';

const [{ url, options, build = PACKAGE }] = await new Promise((resolve) =>
  process.once('message', (...given) => resolve(given)),
);
const { LockService } = await import(build);
const place = Array.isArray(url) ? { nodes: url } : { connection: url };
const service = new LockService({ ...place, ...options });
const leases = new Map();
/** Why a lease was lost, as its signal has told. */
const losses = new Map();
/** Callers with a scope of their own, by name. */
const threads = new Map();
const deadlocks = [];
service.events$.subscribe((event) => event.type === 'deadlock' && deadlocks.push(event));
/** Of the loop that runs. */
let holdsSoFar = 0;
let stopped = false;
let closed = false;

/** The lock of a kind; without one, the plain lock. */
function lockOf(name, kind, permits) {
  if (kind === 'fair') return service.getFairLock(name);
  if (kind === 'semaphore') return service.getSemaphore(name, permits);
  if (kind !== undefined) return service.getReadWriteLock(name)[kind];
  return {
    acquire: (options) => service.acquire(name, options),
    tryAcquire: (options) => service.tryAcquire(name, options),
  };
}

const acquire = (name, { kind, permits, ...options } = {}) => lockOf(name, kind, permits).acquire(options);
const tryAcquire = (name, { kind, permits, ...options } = {}) =>
  lockOf(name, kind, permits).tryAcquire(options);

function keep(lease) {
  if (lease === null) return null;
  const id = leases.size;
  leases.set(id, lease);
  lease.signal.addEventListener('abort', () => losses.set(id, lease.signal.reason.reason));
  return { id, owner: lease.owner, fencingToken: lease.fencingToken, remainingTime: lease.remainingTime() };
}

async function holdFor(name, options, ms) {
  const invoked = now();
  const lease = await acquire(name, options);
  const granted = now();
  await sleep(ms);
  // Taken before the release is sent: from then on another process may rightly be granted the lock.
  const released = now();
  const { fencingToken, held } = lease;
  await lease.release();
  return { invoked, granted, released, fencingToken, lost: !held };
}

function threadOf(name) {
  if (!threads.has(name)) threads.set(name, new LockThread(service, now));
  return threads.get(name);
}

const methods = {
  inThread: (name, verb, ...args) => threadOf(name).run(verb, ...args),
  /** Ends the wait of a thread. */
  interrupt: (name) => threadOf(name).interrupt(),
  acquire: async (name, options) => keep(await acquire(name, options)),
  tryAcquire: async (name, options) => keep(await tryAcquire(name, options)),
  release: (id) => leases.get(id).release(),
  extend: (id, ms) => leases.get(id).extend(ms),
  state: (id) => {
    const { held, signal } = leases.get(id);
    const remainingTime = leases.get(id).remainingTime();
    return { held, remainingTime, aborted: signal.aborted, reason: signal.reason?.reason };
  },
  /** What the holder has been told, without asking. */
  lossOf: (id) => losses.get(id),
  holdFor,
  race: (name, times, options, holdMs) =>
    Promise.all(Array.from({ length: times }, () => holdFor(name, options, holdMs))),
  /** One caller that comes back each time, for `time` ms or until `stop`. What was refused is a record without a grant. */
  loop: async (name, time, options, holdMs, gapMs) => {
    const records = [];
    for (const end = now() + time; now() < end && !stopped; await sleep(gapMs)) {
      const invoked = now();
      try {
        records.push(await holdFor(name, options, holdMs));
        holdsSoFar++;
      } catch ({ message }) {
        records.push({ invoked, refused: now(), message });
      }
    }
    return records;
  },
  /** Holds the first lock, and asks for the second under it after `gapMs`: what became of that. */
  nest: async (first, second, gapMs, holdMs = 0) => {
    const lock = ({ name, kind, permits }) => {
      if (Array.isArray(name)) return service.getMultiLock(name.map((one) => service.getLock(one)));
      return kind === undefined ? service.getLock(name) : lockOf(name, kind, permits);
    };
    return await lock(first).using({ label: first.label }, async () => {
      await sleep(gapMs);
      const asked = now();
      try {
        await lock(second).using({ label: second.label, waitTime: second.waitTime }, () => sleep(holdMs));
        return { asked, ended: now() };
      } catch ({ message, reason, cycle }) {
        return { asked, ended: now(), message, reason, cycle };
      }
    });
  },
  /** The events of deadlocks so far. */
  deadlocks: () => deadlocks,
  holdsSoFar: () => holdsSoFar,
  stop: () => void (stopped = true),
  /**
   * Callers that come back at once, for `time` ms and `times` times at most. Each counts up by reading and writing: two at a
   * time lose a count. With a `wait` in ms a caller goes without its turn where the lock stays busy.
   */
  countUp: async (name, counter, time, callers, { times = Infinity, wait } = {}) => {
    const redis = new Redis(url);
    const end = now() + time;
    const caller = async () => {
      const turns = [];
      for (let count = 0; count < times && now() < end; count++) {
        const asked = now();
        const lease =
          wait === undefined ? await acquire(name) : await service.tryAcquire(name, { waitTime: wait });
        if (lease === null) continue;
        const granted = now();
        await redis.set(counter, Number(await redis.get(counter)) + 1);
        const released = now();
        await lease.release();
        turns.push([asked, granted, released]);
      }
      return turns;
    };
    const turns = await Promise.all(Array.from({ length: callers }, caller));
    await redis.quit();
    return turns;
  },
  /** Callers that come back at once, for `time` ms, and abort within some ms, before or after they were granted the lock. */
  giveUp: async (name, time, callers) => {
    const end = now() + time;
    const caller = async () => {
      while (now() < end) {
        const patience = new AbortController();
        const timer = setTimeout(() => patience.abort(), Math.random() * 20);
        try {
          const lease = await acquire(name, { signal: patience.signal });
          await lease.release();
        } catch ({ code }) {
          if (code !== 'LOCK_ABORTED') throw new Error(`An abort has ended in ${code}`);
        } finally {
          clearTimeout(timer);
        }
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
  },
  /** Where a preload has made the wall clock adjustable. */
  stepClock: (ms) => globalThis.stepClock(ms),
  forceRelease: (name, options) => service.forceRelease(name, options),
  blockEventLoop: (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  shutDown: async () => {
    service.beforeApplicationShutdown();
    await service.onApplicationShutdown();
    closed = true;
  },
};

function answer(message) {
  if (process.connected) process.send(message);
}

process.on('message', async ({ id, method, args }) => {
  try {
    answer({ id, result: await methods[method](...args) });
  } catch (error) {
    const { name, message, code, reason } = error;
    answer({ id, error: { name, message, code, reason } });
  }
});

// A parent that goes without a word has crashed. After a shutdown nothing may be left that keeps this process alive.
process.on('disconnect', () => {
  if (!closed) process.exit(1);
});

answer({ ready: true });
