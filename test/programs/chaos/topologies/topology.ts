import type { LockModuleOptions } from '../../../../lib/index.js';
import type { Fault } from '../faults/fault.js';
import type { Residue } from '../history.js';

/** The place where the locks of one round live. */
export interface Stage {
  /** What the service of one worker is given; it goes to another process, so it is plain data. */
  optionsFor(worker: number): LockModuleOptions;
  readonly faults: readonly Fault[];
  /** ms that it may take to serve again when a fault is over, besides the lease. */
  readonly failover: number;
  /** ms that each place of a killed process holds up a queue: nothing where the store knows who listens. */
  readonly perDead: number;
  /** Whether the kinds with a queue can live here. */
  readonly queues: boolean;
  /** Whether replicas have to confirm each grant. */
  readonly confirmed?: boolean;
  /** Lock commands since the start; undefined when they have been forgotten. */
  commands(): Promise<number | undefined>;
  /** Puts everything in order that a fault may have left. */
  heal(): Promise<void>;
  /** Resolves when every server that the locks need has answered. */
  ping(): Promise<unknown>;
  residue(): Promise<Omit<Residue, 'hanging'>>;
  stop(): Promise<void>;
}

export interface Topology {
  readonly name: string;
  /** @param workers how many there will be, each with its own way to the server */
  start(workers: number): Promise<Stage>;
}
