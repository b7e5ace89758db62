import type { PresetOptions } from './options.js';

/** Options of one acquisition with every default filled in, in ms. */
export interface ResolvedAcquireOptions extends CheckedAcquireOptions {
  readonly waitTime: number;
  readonly maxWaiting: number;
  readonly failFast: boolean;
}

/** Options of one acquisition that have been checked, in ms. */
export interface CheckedAcquireOptions {
  readonly waitTime?: number | undefined;
  readonly leaseTime?: number | undefined;
  readonly renew?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly minHoldTime?: number | undefined;
  readonly maxWaiting?: number | undefined;
  readonly failFast?: boolean | undefined;
  readonly reentrant?: boolean | undefined;
  readonly label?: string | undefined;
}

/** Options with every default filled in, in ms. */
export interface ResolvedLockOptions {
  /** The option that names the Redis of the locks. */
  readonly location: 'connection' | 'nodes' | 'store';
  readonly keyPrefix: string;
  readonly leaseTime: number;
  readonly waitTime: number;
  readonly maxWaitTime: number;
  readonly maxHoldTime: number;
  readonly localHandoff: number;
  readonly maxWaiting: number;
  readonly failFast: boolean;
  readonly reentrant: boolean;
  readonly silencedWarnings: readonly string[];
  readonly enabled: boolean;
  /** The name of the service. */
  readonly instance: string | undefined;
  readonly longWaitTime: number;
  readonly longHoldTime: number;
  readonly lockOrder: 'warn' | 'throw' | 'off';
  readonly deadlock: 'break' | 'report' | 'off';
  readonly label: string;
  readonly presets: ReadonlyMap<string, PresetOptions>;
}
