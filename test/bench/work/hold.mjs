import { setTimeout as sleep } from 'node:timers/promises';

const held = [];

/** Takes leases, keeps them and does nothing: what the watchdog costs. In steps, so that the server is asked between. */
export async function play({ client, params: { step, leases, name, time } }) {
  if (step === 'take') return await take(client, name, leases);
  if (step === 'keep') return void (await sleep(time));
  return void (await Promise.all(held.splice(0).map((release) => release())));
}

async function take(client, name, leases) {
  const before = heap();
  for (let from = 0; from < leases; from += 500) {
    const batch = Array.from({ length: Math.min(500, leases - from) }, (_, n) => `${name}:${from + n}`);
    held.push(...(await Promise.all(batch.map((key) => client.hold(key)))));
  }
  return { bytes: heap() - before };
}

/** Bytes in use after everything that can go has gone. */
export function heap() {
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
