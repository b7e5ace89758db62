import { slices } from './slices.mjs';

/** Enters again, inside a lock that the scope holds. */
export async function play({ client: { service }, params: { name, times } }) {
  return await service.using(name, async () => {
    const [entered] = await slices(times, () => service.using(name, () => undefined));
    return { entered };
  });
}
