import type { NodeHealth, StoreWarning } from './store-health.js';

/** The warnings about each server by itself. */
export function nodeWarnings(nodes: readonly NodeHealth[]): StoreWarning[] {
  const warnings: StoreWarning[] = [];
  for (const { node, evictionPolicy, role, sentinels = 0 } of nodes) {
    if (evictionPolicy !== undefined && evictionPolicy !== 'noeviction') {
      const message =
        `${node} deletes keys when its memory is full (maxmemory-policy ${evictionPolicy}), locks that are held ` +
        'included. Set maxmemory-policy to noeviction, or keep locks on a server of their own';
      warnings.push({ code: 'eviction-policy', node, message });
    }
    if (role === 'replica') {
      const message =
        `${node} is a replica: it takes no locks, and writes to it are lost. Connect to its master, or ` +
        'through Sentinel, which names the master';
      warnings.push({ code: 'replica', node, message });
    }
    if (sentinels > 0) {
      const message =
        `${node} is watched by ${String(sentinels)} ${sentinels === 1 ? 'sentinel' : 'sentinels'}, and this connection ` +
        'asks none: after a failover it may take locks at the former master that services on Sentinel take at the new one. ' +
        'Connect with { name, sentinels: [{ host, port }] }';
      warnings.push({ code: 'direct-connection', node, message });
    }
  }
  return warnings;
}

/** For nodes that are meant to fail independently of each other: a server that is named twice would vote twice. */
export function sameServerWarnings(nodes: readonly NodeHealth[]): StoreWarning[] {
  const warnings: StoreWarning[] = [];
  const known = new Map<string, string>();
  for (const { node, runId } of nodes) {
    // Some managed services report zeros instead of the run id.
    if (runId === undefined || /^0*$/.test(runId)) continue;
    const other = known.get(runId);
    known.set(runId, node);
    if (other === undefined) continue;
    const message =
      `${other} and ${node} are the same server, whose vote counts twice: when it fails, so does more than one ` +
      'node. Give each of the nodes a server of its own';
    warnings.push({ code: 'same-server', node, message });
  }
  return warnings;
}

/** For nodes of a quorum that do not let this service at their charter. */
export const charterWarnings = (
  nodes: readonly [node: string, refusal: Error | undefined][],
): StoreWarning[] =>
  nodes.flatMap(([node, refusal]) =>
    refusal === undefined ? [] : [{ code: 'charter-right', node, message: refusal.message }],
  );

/** For a service that has one node of a quorum for itself. */
export const quorumNodeWarnings = (nodes: readonly string[]): StoreWarning[] =>
  nodes.map((node) => ({
    code: 'quorum-node',
    node,
    message:
      `${node} is one of the nodes of a quorum: a lock that is taken there alone keeps no service out that takes it by nodes. ` +
      'Let all services have the same nodes, or use another server here',
  }));
