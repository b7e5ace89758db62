import type { Severity } from '../history.js';
import type { Random } from '../random.js';
import type { Group } from '../strikes.js';

/** What a strike concerns, where it is not everybody. */
export interface Concern {
  process?: string;
  lock?: string;
}

export interface Strike {
  readonly random: Random;
  readonly concern: Concern;
  /** The locks of this round. */
  readonly locks: readonly string[];
}

/** It cannot strike now, because another has struck what it needs. */
export class InTheWay extends Error {}

/** Something that goes wrong for a while. */
export interface Fault {
  readonly name: string;
  readonly group: Group;
  readonly severity: Severity;
  /** ms, from and to; 0 where it is over at once. */
  readonly lasts: readonly [number, number];
  /** Steps of the server's clock go together only with pauses and with what is harmless: see docs/guarantees.md. */
  readonly apart?: 'clock' | 'pause';
  /** @returns what ends it */
  strike(strike: Strike): Promise<() => unknown>;
}
