import { cpuUsage } from 'node:process';

/** ms of CPU that a call keeps the event loop for. */
const timeOf = (run) => {
  const before = cpuUsage();
  run();
  const { user, system } = cpuUsage(before);
  return (user + system) / 1_000;
};

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** A process with many holds: what its own questions cost, and the longest turn of the event loop in the given time. */
export async function play({ client: { service }, params: { time } }) {
  const leases = median(Array.from({ length: 5 }, () => timeOf(() => service.leases())));
  await service.health();
  const before = cpuUsage();
  const { held } = await service.health();
  const { user, system } = cpuUsage(before);
  const health = (user + system) / 1_000;
  let longest = 0;
  const end = performance.now() + time;
  for (let begun = performance.now(); begun < end; begun = performance.now()) {
    await new Promise((resolve) => setImmediate(resolve));
    longest = Math.max(longest, performance.now() - begun);
  }
  return { leases, health, held, longest };
}
