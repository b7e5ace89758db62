import type { Wanted } from './blockers.js';

/** A wait, described by another process. */
export interface NotedWait extends Wanted {
  readonly id: string;
  /** Time of day, ms, by the clock of its process. */
  readonly since: number;
  readonly name: string;
  readonly label: string;
  readonly holds: readonly string[];
  /** Whether its process may end it to break a deadlock. */
  readonly breaks: boolean;
}

/** The note in which a process reports its waits to others. */
export interface WaitNote {
  readonly process: string;
  /** Increases with each note. An unchanged stamp means that the process has written no new note. */
  readonly stamp: number;
  readonly waits: readonly NotedWait[];
}

const VERSION = 1;

export const encodeNote = ({ process, stamp, waits }: WaitNote): string =>
  JSON.stringify({ version: VERSION, process, stamp, waits });

/** Undefined if the text is not a note of this version. */
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
