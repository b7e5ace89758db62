import { cluster } from './cluster.js';
import { quorum } from './quorum.js';
import { sentinelAlone, sentinelConfirmed } from './sentinel.js';
import { durableServer, singleServer } from './single.js';
import type { Topology } from './topology.js';

export const topologies: readonly Topology[] = [
  singleServer,
  durableServer,
  sentinelAlone,
  sentinelConfirmed,
  cluster,
  quorum,
];
