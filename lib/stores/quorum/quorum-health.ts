import type { StoreHealth } from '../../store/store-health.js';
import { overallStatus } from '../../store/overall-status.js';
import { charterWarnings, sameServerWarnings } from '../../store/node-warnings.js';
import type { Quorum } from './quorum.js';

const NO_RUN = 'it withholds its run id (INFO), so it never votes: it may have restarted and forgotten locks';
const RESTARTED =
  'it has restarted, and does not vote before every lease that it may have forgotten has ended';

/** @returns `down` if too few members can vote to grant a lock */
export function quorumHealth(reports: readonly StoreHealth[], { charters, needed }: Quorum): StoreHealth {
  const { conflict, numbers } = charters;
  const withheld = (index: number) => charters.current(index)?.withheld?.cause as Error | undefined;
  const nodes = reports.flatMap((report, index) =>
    report.nodes.map((node) => {
      const quarantine = charters.quarantineOf(index);
      if (conflict !== undefined)
        return { ...node, status: 'down' as const, error: conflict.message, quarantine };
      if (quarantine === undefined || quarantine === 0 || node.status === 'down')
        return { ...node, quarantine };
      const error = withheld(index)?.message ?? (quarantine === Infinity ? NO_RUN : RESTARTED);
      return { ...node, status: 'degraded' as const, error, quarantine };
    }),
  );
  const voting = nodes.filter((node) => node.status !== 'down' && (node.quarantine ?? 0) === 0);
  return {
    status: voting.length < needed ? 'down' : overallStatus(nodes, needed),
    nodes,
    warnings: [
      ...reports.flatMap((report) => report.warnings),
      ...sameServerWarnings(nodes),
      ...charterWarnings(nodes.map(({ node }, index) => [node, withheld(index)])),
    ],
    ...(numbers && {
      charter: { id: numbers.id, longestLease: numbers.longest, allowedLease: charters.allowed },
    }),
  };
}
