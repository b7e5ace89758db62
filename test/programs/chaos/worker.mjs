// One process of a chaos run: takes and releases locks by a seeded plan through the public API of the built package,
// and writes down what happens, in lines that survive a kill -9. See history.ts for the lines.
import 'reflect-metadata';
import { EventEmitter, on } from 'node:events';
import { openSync, writeSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { keepPromises } from './promises.mjs';

const TICK = 10;
const now = () => Number(process.hrtime.bigint()) / 1e6;

const [plan] = await new Promise((resolve) => process.once('message', (...given) => resolve(given)));
const { LockService } = await import(plan.package);
const journal = openSync(plan.journal, 'a');
const note = (type, op, rest) => {
  writeSync(journal, `${JSON.stringify({ at: now(), type, op, ...rest })}\n`);
};

Logger.overrideLogger(false);
const service = new LockService({
  ...plan.options,
  label: basename(plan.journal, '.jsonl'),
  lockOrder: 'off',
});
service.events$.subscribe(({ type, cycle, broken }) => {
  if (type === 'deadlock') note(type, undefined, { cycle, broken });
});
const resource = new Redis(plan.resource, { disconnectTimeout: 0 });
let ops = 0;
let draining = false;
let finished = false;

// What this process cannot do while it does not run must not be held against it.
let ticked = now();
let alive = 0;
const ticker = setInterval(() => {
  const late = now() - ticked - TICK;
  if (late > TICK) note('lag', undefined, { from: ticked + TICK });
  else if (++alive % 10 === 0) note('alive');
  ticked = now();
}, TICK);

let state = plan.seed;
/** Mulberry32, from 0 to 1. */
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const between = (least, most) => Math.round(least + random() * (most - least));
const chance = (share) => random() < share;
const pick = (list) => list[Math.floor(random() * list.length)];

function lockOf({ name, kind, permits }, side) {
  if (kind === 'fair') return service.getFairLock(name);
  if (kind === 'semaphore') return service.getSemaphore(name, permits);
  if (kind === 'read-write') return service.getReadWriteLock(name)[side];
  return service.getLock(name);
}

function describe({ name, kind, permits }, side) {
  const shared = kind === 'semaphore' || side === 'read';
  const capacity = kind === 'semaphore' ? permits : kind === 'read-write' ? 1e9 : 1;
  return { lock: name, kind, mode: shared ? 'shared' : 'exclusive', capacity };
}

/** The options of one acquisition, some of which give up, are aborted, or have a short lease of their own. */
function terms() {
  const { fixedShare = 0.15, patient = 0.5, longestWait = 3_000 } = plan.habits;
  const fixed = chance(fixedShare);
  const options = { waitTime: chance(patient) ? Infinity : between(100, longestWait) };
  if (fixed) options.leaseTime = between(300, 800);
  if (chance(0.05)) options.signal = AbortSignal.timeout(between(1, 600));
  return options;
}

/** The deadline as the holder sees it, on the clock of the journal. */
const deadlineOf = (lease) => now() + lease.remainingTime();

function granted(op, lease) {
  const { owner, fencingToken: token, signal } = lease;
  note('grant', op, { owner, token, deadline: deadlineOf(lease) });
  const lost = () => note('loss', op, { reason: signal.reason?.reason });
  if (signal.aborted) lost();
  else signal.addEventListener('abort', lost, { once: true });
}

/** Reads, thinks and writes, each with the token: the resource refuses whoever comes after a successor. */
async function update(op, lock, lease) {
  if (!assertHeld(op, lease)) return;
  const read = await resource.read(lock, lease.fencingToken).catch(() => null);
  if (read === null || read < 0) return;
  await hold(op, lease, chance(0.8) ? 0 : between(1, 20));
  if (!assertHeld(op, lease)) return;
  await resource.write(lock, lease.fencingToken, read + 1, read).catch(() => null);
}

function assertHeld(op, lease) {
  const before = now();
  try {
    lease.assertHeld();
  } catch {
    return false;
  }
  note('write', op, { before, deadline: deadlineOf(lease) });
  return true;
}

/** Whoever has a fixed lease does not look at it: nobody but the package's own timer can tell of the loss. */
async function hold(op, lease, ms, fixed = false) {
  if (fixed) return await sleep(ms);
  const until = now() + ms;
  while (now() < until) {
    await sleep(Math.min(TICK * 2, until - now()));
    if (lease.held) note('deadline', op, { deadline: deadlineOf(lease) });
  }
}

async function extend(op, lease) {
  const ms = between(300, 1_500);
  note('extend', op, { leaseTime: ms });
  try {
    await lease.extend(ms);
    note('extended', op, { outcome: 'ok', deadline: deadlineOf(lease) });
  } catch (error) {
    note('extended', op, { outcome: error.code === 'LOCK_LOST' ? 'lost' : 'unknown' });
  }
}

async function work(op, spec, side, lease, fixed) {
  const { long = 0.012, shortest = 300, longest = 1_000, extensions = 0.05 } = plan.habits;
  if (spec.kind !== 'semaphore' && side !== 'read') await update(op, spec.name, lease);
  if (chance(extensions)) await extend(op, lease);
  const duration = random();
  if (duration < long) await hold(op, lease, between(shortest, longest), fixed);
  else if (duration < 0.15) await hold(op, lease, between(1, 30), fixed);
}

/** A nested acquisition of what the scope holds: the same lock, or the read side of what it writes. */
async function nested(outer, spec, side) {
  const inner = spec.kind === 'read-write' ? 'read' : side;
  const op = ++ops;
  note('invoke', op, {
    ...describe(spec, inner),
    call: 'nested',
    outer,
    leaseTime: plan.lease,
    renewed: true,
  });
  const lease = await attempt(op, () => lockOf(spec, inner).acquire({ waitTime: 2_000 }));
  if (lease === null) return;
  await hold(op, lease, between(0, 10));
  await release(op, lease);
}

/** While the caller waits for something else under it, the deadlines of a lease are noted. */
async function holding(op, lease, work) {
  const look = setInterval(() => {
    if (lease.held) note('deadline', op, { deadline: deadlineOf(lease) });
  }, TICK * 2);
  try {
    return await work();
  } finally {
    clearInterval(look);
  }
}

async function attempt(op, ask) {
  try {
    const lease = await ask();
    if (lease === null) note('refuse', op, { code: 'busy' });
    else granted(op, lease);
    return lease;
  } catch (error) {
    note('refuse', op, { code: error.code === 'LOCK_TIMEOUT' ? 'busy' : (error.code ?? String(error)) });
    return null;
  }
}

async function release(op, lease) {
  if (lease.held) note('deadline', op, { deadline: deadlineOf(lease) });
  note('release', op);
  await lease.release();
  note('released', op);
}

/** `using`, whose callback may enter again. Its own release begins when the callback ends. */
async function entering(op, lock, options, run) {
  let entered = false;
  try {
    await lock.using(options, async (lease) => {
      entered = true;
      granted(op, lease);
      await run(lease);
      if (lease.held) note('deadline', op, { deadline: deadlineOf(lease) });
      note('release', op);
    });
    note('released', op);
  } catch (error) {
    if (entered) note('fault', op, { error: String(error) });
    else note('refuse', op, { code: error.code === 'LOCK_TIMEOUT' ? 'busy' : (error.code ?? String(error)) });
  }
}

const enter = (op, spec, side, options) =>
  entering(op, lockOf(spec, side), options, async (lease) => {
    await work(op, spec, side, lease, options.leaseTime !== undefined);
    if (lease.held && side !== 'read') await holding(op, lease, () => nested(op, spec, side));
  });

/** One lock under another one, in any order: what makes deadlocks. No wait is without an end. */
async function under() {
  const outer = pick(plan.locks);
  const inner = pick(plan.locks.filter(({ name }) => name !== outer.name));
  if (inner === undefined) return;
  const sideOf = ({ kind }) => (kind === 'read-write' ? pick(['read', 'write']) : undefined);
  const [outerSide, innerSide] = [sideOf(outer), sideOf(inner)];
  const asked = { call: 'acquire', leaseTime: plan.lease, renewed: true };
  const op = ++ops;
  const waitTime = between(500, 2_000);
  note('invoke', op, { ...describe(outer, outerSide), ...asked, waitTime });
  await entering(op, lockOf(outer, outerSide), { waitTime }, async (lease) => {
    await hold(op, lease, between(0, 20));
    const nested = ++ops;
    const patience = between(plan.habits.leastPatience ?? 600, 4_500);
    note('invoke', nested, { ...describe(inner, innerSide), ...asked, under: op, waitTime: patience });
    await holding(op, lease, async () => {
      const got = await attempt(nested, () => lockOf(inner, innerSide).acquire({ waitTime: patience }));
      if (got === null) return;
      await hold(nested, got, between(0, 10));
      await release(nested, got);
    });
    // It holds on, and waits for nothing any more.
    await hold(op, lease, between(0, plan.habits.lingers ?? 10));
  });
}

/** Several plain locks at once: an attempt for each, which are answered together. */
async function several() {
  const specs = plan.locks.filter(({ kind }) => kind === 'lock');
  const names = specs.map(({ name }) => name);
  const waitTime = chance(0.5) ? Infinity : between(100, 2_000);
  // Each is waited for as long as another one is busy, so that the checkers of single locks take it for a try.
  const asked = { call: 'try', several: ops + 1, leaseTime: plan.lease, renewed: true };
  const members = specs.map((spec) => ({ ...describe(spec), op: ++ops }));
  for (const { op, ...described } of members) note('invoke', op, { ...described, ...asked });
  let lease;
  try {
    lease = await service.acquire(names, { waitTime });
  } catch (error) {
    const code = error.code === 'LOCK_TIMEOUT' ? 'one of several busy' : (error.code ?? String(error));
    for (const { op } of members) note('refuse', op, { code });
    return;
  }
  const parts = members.map(({ op, lock }) => ({ op, lock, lease: partOf(lease, lock) }));
  for (const { op, lease: part } of parts) granted(op, part);
  for (const { op, lock, lease: part } of parts) await update(op, lock, part);
  if (chance(0.3)) await hold(parts[0].op, lease, between(1, 30));
  for (const { op } of parts) {
    if (lease.held) note('deadline', op, { deadline: deadlineOf(lease) });
    note('release', op);
  }
  await lease.release();
  for (const { op } of parts) note('released', op);
}

/** What a caller may see of one of the locks that it has taken together. */
const partOf = (lease, name) => ({
  owner: `${lease.owner} ${name}`,
  fencingToken: lease.fencingTokens.get(name),
  signal: lease.signal,
  get held() {
    return lease.held;
  },
  remainingTime: () => lease.remainingTime(),
  assertHeld: () => lease.assertHeld(),
});

async function once() {
  if (chance(plan.habits.nests ?? 0.01)) return await under();
  const spec = pick(plan.locks);
  if (spec.kind === 'lock' && chance(plan.habits.several ?? 0)) return await several();
  const side = spec.kind === 'read-write' ? pick(['read', 'read', 'write']) : undefined;
  const options = terms();
  const { leaseTime = plan.lease, waitTime } = options;
  const trying = chance(plan.habits.tries ?? 0.15);
  const op = ++ops;
  const call = trying ? 'try' : 'acquire';
  const renewed = options.leaseTime === undefined;
  note('invoke', op, { ...describe(spec, side), call, leaseTime, renewed, waitTime: trying ? 0 : waitTime });
  if (!trying && spec.kind !== 'semaphore' && chance(0.2)) return await enter(op, spec, side, options);
  const lock = lockOf(spec, side);
  const lease = await attempt(op, () =>
    trying ? lock.tryAcquire({ ...options, waitTime: 0 }) : lock.acquire(options),
  );
  if (lease === null) return;
  await work(op, spec, side, lease, !renewed);
  await release(op, lease);
}

// Some is done as by a server that the holder of a lock has started: in the scope of that lock, which is none of the
// locks that are judged. It is a lock in memory, so that no fault ends it.
const leader = new LockService({ store: 'memory' });
const requests = new EventEmitter();
const serving = leader.using('leader', async () => {
  for await (const [handle] of on(requests, 'request', { close: ['end'] })) void handle();
});
const serve = (task) =>
  new Promise((resolve, reject) => {
    requests.emit('request', () => task().then(resolve, reject));
  });

async function loop() {
  const { pause = 15, served = 0.3 } = plan.habits;
  while (!draining) {
    await (chance(served) ? serve(once) : once());
    // Not in step: sometimes at once, sometimes after a while.
    await sleep(chance(0.5) ? 0 : between(0, pause));
  }
}

const realNow = Date.now;
const methods = {
  block: ({ ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  clock: ({ offset }) => (Date.now = () => realNow() + offset),
  drain: () => (draining = true),
};
process.on('message', (message) => methods[message.method](message));
process.on('disconnect', () => {
  if (!finished) process.exit(1);
});

resource.defineCommand('read', { numberOfKeys: 1, lua: plan.scripts.read });
resource.defineCommand('write', { numberOfKeys: 1, lua: plan.scripts.write });
await resource.ping();
note('start', undefined, { pid: process.pid });
// How long a first connection takes says nothing about the locks. Where a fault is on already it takes for ever.
for (const end = now() + 2_000; now() < end && (await service.health()).status === 'down';) await sleep(20);
process.send({ ready: true });

const promises = plan.promises
  ? keepPromises({ service, resource, note, now, between, chance, isOver: () => draining })
  : undefined;
await Promise.all([promises, ...Array.from({ length: plan.loops }, loop)]);
note('drained');
process.send({ drained: true });
clearInterval(ticker);
resource.disconnect();
requests.emit('end');
await serving;
await leader.onApplicationShutdown();
service.beforeApplicationShutdown();
await service.onApplicationShutdown();
note('end');
finished = true;
// From here on nothing may keep this process alive.
process.disconnect();
