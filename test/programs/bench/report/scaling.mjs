import { Ratios } from './ratios.mjs';
import { slope } from './statistics.mjs';

/** What a fleet of the size that the page extrapolates to has. */
const FLEET = { instances: 1_000, leases: 1_000_000 };
/** Renewals of each lease of 30 s, per second. */
const RENEWALS = 1 / 10;

/** The figures of docs/scaling.md: what was measured step by step, its slopes, and what follows from them. */
export function scaling({ results }) {
  const r = new Ratios(results);
  const steps = (kind) =>
    Object.keys(results)
      .filter((id) => id.startsWith(`growth-${kind}-`))
      .map((id) => Number(id.split('-')[2]));
  const at = (kind, step, contender, figure) => r.median(`growth-${kind}-${step}`, contender, figure);
  const slopeOf = (kind, contender, figure) =>
    slope(steps(kind).map((step) => [step, at(kind, step, contender, figure)]));

  const lease = (figure) => slopeOf('leases', 'ours', figure).perUnit;
  const renewals = FLEET.leases * RENEWALS;
  const pair = r.median('uncontended', 'ours', 'serverCpu');
  return {
    processes: steps('processes'),
    waiters: steps('waiters'),
    leases: steps('leases'),
    at,
    fairCommands: at('processes', 32, 'fair', 'commands'),
    fairMessages: at('processes', 32, 'fair', 'messages'),
    fairBytes: at('processes', 32, 'fair', 'bytes'),
    commandsPerLease: lease('commandsPerRenewal'),
    bytesPerRenewal: lease('traffic'),
    serverMicroseconds: lease('serverCpu') * 1000,
    clientMicroseconds: lease('clientCpu') * 1000,
    serverBytes: lease('serverBytes'),
    clientBytes: lease('clientBytes'),
    fleet: {
      connections: FLEET.instances * 2,
      // Each instance sends batches of its own.
      commandsPerSecond: FLEET.instances * Math.ceil(FLEET.leases / FLEET.instances / 100) * RENEWALS,
      megabytesPerSecond: (renewals * lease('traffic')) / 1e6,
      serverCore: renewals * lease('serverCpu') * 0.1,
      serverMegabytes: (FLEET.leases * lease('serverBytes')) / 1e6,
    },
    serverPair: pair,
    /** Where many commands come over one connection at once. */
    serverPairTogether: r.median('parallel', 'ours', 'serverCpu'),
    pairsPerSecond: 1e6 / pair,
    /** With half of its core for other things and for peaks. */
    pairsInHalf: 5e5 / pair,
    hotKey: r.median('4x8', 'fair', 'throughput'),
    hotKeyPlain: r.median('crowd', 'ours', 'throughput'),
  };
}
