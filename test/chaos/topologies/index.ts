import { durableServer, singleServer } from './single.js';
import type { Topology } from './topology.js';

export const topologies: readonly Topology[] = [singleServer, durableServer];
