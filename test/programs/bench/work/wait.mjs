import { setTimeout as sleep } from 'node:timers/promises';
import { heap } from './hold.mjs';

/** Memory of those who wait while somebody holds the lock. */
export async function play({ client, params: { name, waiters } }) {
  const release = await client.lock(name);
  const before = heap();
  const waiting = Array.from({ length: waiters }, () => (client.wait ?? client.lock)(name));
  // Some give up, which is not what is measured here.
  for (const one of waiting) one.catch(() => undefined);
  await sleep(400);
  const bytes = heap() - before;
  await release();
  return { bytes };
}
