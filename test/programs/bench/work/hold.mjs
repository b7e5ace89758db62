import { setTimeout as sleep } from 'node:timers/promises';

const held = [];

/** Takes leases, keeps them and does nothing: what the watchdog costs. In steps, so that the server is asked between. */
export async function play({ client, params: { step, leases, name, time } }) {
  if (step === 'take') return await take(client, name, leases);
  if (step === 'keep') await sleep(time);
  if (step === 'leave') return await leave(client);
  return {};
}

/** So many at once, and no more: nobody starts with a hundred thousand in one moment. */
const BATCH = 500;

async function take(client, name, leases) {
  const before = heap();
  for (let from = 0; from < leases; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, leases - from) }, (_, n) => `${name}:${from + n}`);
    held.push(...(await Promise.all(batch.map((key) => client.hold(key)))));
  }
  return { bytes: heap() - before };
}

async function leave({ losses }) {
  let failed = 0;
  while (held.length > 0) {
    const releases = await Promise.allSettled(held.splice(0, BATCH).map((release) => release()));
    failed += releases.filter(({ status }) => status === 'rejected').length;
  }
  return { lost: losses?.() ?? failed };
}

/** Bytes in use after everything that can go has gone. */
export function heap() {
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
