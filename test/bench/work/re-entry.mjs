import { now } from '../harness/clock.mjs';

/** Enters again, inside a lock that the scope holds. */
export async function play({ client: { service }, params: { name, times } }) {
  return await service.using(name, async () => {
    const began = now();
    for (let time = 0; time < times; time++) await service.using(name, () => undefined);
    return { began, ended: now(), times };
  });
}
