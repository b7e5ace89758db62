import type { HealthStatus, NodeHealth } from './store-health.js';

/** @param needed how many nodes have to answer so that any lock can be taken: a majority, or one of several shards */
export function overallStatus(nodes: readonly NodeHealth[], needed: number): HealthStatus {
  if (nodes.every(({ status }) => status === 'up')) return 'up';
  return nodes.filter(({ status }) => status !== 'down').length >= needed ? 'degraded' : 'down';
}
