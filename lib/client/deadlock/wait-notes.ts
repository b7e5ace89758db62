import type { Wanted } from './blockers.js';

/** A wait of another process, as its process has described it. */
export interface NotedWait extends Wanted {
  readonly id: string;
  /** Time of day, ms, by the clock of its process. */
  readonly since: number;
  readonly name: string;
  readonly label: string;
  readonly holds: readonly string[];
  /** Its process ends it where it has to end. */
  readonly breaks: boolean;
}

/** What a process tells the others of its waits. */
export interface WaitNote {
  /** The label of the process. */
  readonly process: string;
  /** Greater with each note: a note that does not change is of a process that does not run. */
  readonly stamp: number;
  readonly waits: readonly NotedWait[];
}

const VERSION = 1;

export const encodeNote = ({ process, stamp, waits }: WaitNote): string =>
  JSON.stringify({ version: VERSION, process, stamp, waits });

/** Undefined for what is no note of this version. */
export function decodeNote(text: string | undefined): WaitNote | undefined {
  if (text === undefined) return undefined;
  try {
    const note = JSON.parse(text) as Partial<WaitNote> & { version?: unknown };
    const { version, process, stamp, waits } = note;
    if (version !== VERSION || typeof process !== 'string' || typeof stamp !== 'number') return undefined;
    return Array.isArray(waits) && waits.every(isNotedWait) ? { process, stamp, waits } : undefined;
  } catch {
    return undefined;
  }
}

function isNotedWait(value: unknown): value is NotedWait {
  if (typeof value !== 'object' || value === null) return false;
  const { id, since, name, label, mode, permits, holds, breaks } = value as Partial<NotedWait>;
  return (
    [id, name, label].every((text) => typeof text === 'string') &&
    typeof since === 'number' &&
    (mode === 'exclusive' || mode === 'shared') &&
    (permits === undefined || typeof permits === 'number') &&
    typeof breaks === 'boolean' &&
    Array.isArray(holds) &&
    holds.every((owner) => typeof owner === 'string')
  );
}
