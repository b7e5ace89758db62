import { existsSync, readFileSync } from 'node:fs';
import type { Update } from './resource.js';

/** One line of a worker's journal. `at` is ms on a clock that all processes of the machine share. */
export interface Line {
  readonly at: number;
  readonly type: string;
  readonly op?: number;
  readonly [detail: string]: unknown;
}

export type Mode = 'exclusive' | 'shared';
export type Kind = 'lock' | 'fair' | 'read-write' | 'semaphore';

/** One attempt to get a lock, and what became of it. Times are ms; what has not happened is undefined. */
export interface Attempt {
  readonly process: string;
  readonly op: number;
  readonly lock: string;
  readonly kind: Kind;
  readonly mode: Mode;
  readonly capacity: number;
  readonly call: 'acquire' | 'try' | 'nested';
  /** The attempt whose scope this one runs in, if it re-enters. */
  readonly outer?: number | undefined;
  /** The attempt under which this one asks for another lock. */
  readonly under?: number | undefined;
  /** The first attempt of the call, if it asks for several locks at once. */
  readonly several?: number | undefined;
  readonly leaseTime: number;
  readonly renewed: boolean;
  readonly invoked: number;
  granted?: number;
  owner?: string;
  token?: number;
  /** `busy`, or the code of the error. */
  refusal?: string;
  answered?: number;
  /** The deadlines that the holder has seen, each with the moment when it looked. */
  deadlines: { at: number; until: number }[];
  lost?: number;
  releaseFrom?: number;
  releaseTo?: number;
  /** Moments at which the holder was told that it holds, and acted: from just before the question to just after. */
  writes: { before: number; at: number }[];
  extensions: { from: number; to?: number; outcome?: 'ok' | 'lost' | 'unknown'; leaseTime: number }[];
}

/** What a process notes of elections, travelling leases and work once per period; see promises.mjs. */
export type PromiseNote = { readonly process: string; readonly at: number } & (
  | {
      readonly type: 'told';
      readonly promise: 'election' | 'lease';
      /** The term, or the token. */
      readonly number: number;
      /** Just before the question. */
      readonly before: number;
    }
  | { readonly type: 'resumed'; readonly ticket: string; readonly token: number }
  | { readonly type: 'success'; readonly begun: number; readonly worked: number; readonly period: number }
);

/** A deadlock that a process was told of. */
export interface ToldDeadlock {
  readonly process: string;
  readonly at: number;
  readonly cycle: readonly { readonly name: string; readonly process: string }[];
  readonly broken: boolean;
}

export interface Process {
  readonly name: string;
  /** When it did not run although it should have. */
  readonly lags: { from: number; to: number }[];
  /** The last moment at which it is known to have run. */
  lastSeen: number;
  /** It has shut down as it should. */
  ended: boolean;
  /** What no worker may see, such as an error of the package inside a callback. */
  readonly errors: string[];
}

/** What a fault does besides being there. `harmless`: nothing; `outage`: answers fail; `loss`: the store forgets. */
export type Severity = 'harmless' | 'outage' | 'loss';

export interface FaultInterval {
  readonly fault: string;
  readonly severity: Severity;
  readonly from: number;
  readonly to: number;
  /** The only process that is concerned; all when undefined. */
  readonly process?: string | undefined;
  /** The only lock that is concerned; all when undefined. */
  readonly lock?: string | undefined;
}

/** What is left when everybody has gone. */
export interface Residue {
  readonly keys: readonly { readonly key: string; readonly ttl: number }[];
  readonly channels: readonly string[];
  readonly clients: number;
  /** Workers that did not exit by themselves. */
  readonly hanging: readonly string[];
}

export interface History {
  readonly attempts: readonly Attempt[];
  readonly processes: ReadonlyMap<string, Process>;
  /** When the locks' servers did not answer. */
  readonly server: Pick<Process, 'lags'>;
  readonly faults: readonly FaultInterval[];
  readonly updates: readonly Update[];
  /** When the last fault was over. */
  readonly healed: number;
  /** When the run was told to end. */
  readonly drained: number;
  readonly residue: Residue | undefined;
  /** Whether who waits stands in a queue of the store. */
  readonly queues: boolean;
  /** Whether replicas have to confirm each grant. */
  readonly confirmed: boolean;
  readonly deadlocks?: readonly ToldDeadlock[] | undefined;
  /** Undefined in a run without elections, travelling leases and work once per period. */
  readonly notes?: readonly PromiseNote[] | undefined;
  /** Lock commands that the server has run; undefined where it has forgotten them. */
  readonly commands: number | undefined;
}

export interface Violation {
  readonly checker: string;
  readonly at: number;
  readonly message: string;
}

/** The deadline that the holder knew last. */
export const deadlineOf = ({ deadlines }: Attempt): number =>
  deadlines.reduce((latest, { until }) => Math.max(latest, until), -Infinity);

/** When a hold ends: at the start of its release, at its loss signal or at its deadline, whichever is first. */
export const endOf = (attempt: Attempt): number =>
  Math.min(attempt.releaseFrom ?? Infinity, attempt.lost ?? Infinity, deadlineOf(attempt));

/** Those that were granted, in the order of their grants. */
export const holdsOf = (
  attempts: readonly Attempt[],
): (Attempt & { granted: number; token: number; owner: string })[] =>
  attempts
    .filter(
      (attempt): attempt is Attempt & { granted: number; token: number; owner: string } =>
        attempt.granted !== undefined,
    )
    .sort((a, b) => a.granted - b.granted);

export function byLock(attempts: readonly Attempt[]): Map<string, Attempt[]> {
  const groups = new Map<string, Attempt[]>();
  for (const attempt of attempts) {
    const group = groups.get(attempt.lock);
    if (group === undefined) groups.set(attempt.lock, [attempt]);
    else group.push(attempt);
  }
  return groups;
}

/** For how long a process did not run between two moments, as far as it noticed. */
export const lagWithin = (process: Pick<Process, 'lags'> | undefined, from: number, to: number): number =>
  (process?.lags ?? []).reduce(
    (sum, lag) => sum + Math.max(0, Math.min(lag.to, to) - Math.max(lag.from, from)),
    0,
  );

interface Journal {
  readonly process: Process;
  readonly attempts: Attempt[];
  readonly notes: PromiseNote[];
  readonly deadlocks: ToldDeadlock[];
}

const NOTES = ['told', 'resumed', 'success'];

/** Puts one worker's lines together. A last line that was cut off by a kill is left out. */
export const readJournal = (name: string, text: string): Journal =>
  readLines(
    name,
    text
      .split('\n')
      .slice(0, -1)
      .map((json) => JSON.parse(json) as Line),
  );

/** Puts one worker's lines together. */
export function readLines(name: string, lines: readonly Line[]): Journal {
  const process: Process = { name, lags: [], lastSeen: -Infinity, ended: false, errors: [] };
  const attempts = new Map<number, Attempt>();
  const notes: PromiseNote[] = [];
  const deadlocks: ToldDeadlock[] = [];
  for (const line of lines) {
    process.lastSeen = line.at;
    const attempt = attempts.get(line.op ?? -1);
    if (line.type === 'invoke') attempts.set(line.op!, begin(name, line));
    else if (line.type === 'lag') process.lags.push({ from: line.from as number, to: line.at });
    else if (NOTES.includes(line.type)) notes.push({ ...line, process: name } as unknown as PromiseNote);
    else if (line.type === 'deadlock') deadlocks.push({ ...line, process: name } as unknown as ToldDeadlock);
    else if (line.type === 'end') process.ended = true;
    else if (line.type === 'fault') process.errors.push(line.error as string);
    else if (attempt !== undefined) goOn(attempt, line);
  }
  return { process, attempts: [...attempts.values()], notes, deadlocks };
}

/** A worker that was killed before it wrote anything has no file. */
export const readJournalFile = (name: string, path: string) =>
  readJournal(name, existsSync(path) ? readFileSync(path, 'utf8') : '');

const begin = (process: string, { at, ...details }: Line): Attempt => ({
  ...(details as unknown as Omit<Attempt, 'process' | 'invoked' | 'deadlines' | 'writes' | 'extensions'>),
  process,
  invoked: at,
  deadlines: [],
  writes: [],
  extensions: [],
});

function goOn(attempt: Attempt, line: Line): void {
  const { at } = line;
  if (typeof line.deadline === 'number') attempt.deadlines.push({ at, until: line.deadline });
  const extension = attempt.extensions.at(-1);
  switch (line.type) {
    case 'grant':
      attempt.granted = attempt.answered = at;
      attempt.owner = line.owner as string;
      attempt.token = line.token as number;
      break;
    case 'refuse':
      attempt.answered = at;
      attempt.refusal = line.code as string;
      break;
    case 'loss':
      attempt.lost = at;
      break;
    case 'write':
      attempt.writes.push({ before: line.before as number, at });
      break;
    case 'extend':
      attempt.extensions.push({ from: at, leaseTime: line.leaseTime as number });
      break;
    case 'extended':
      Object.assign(extension!, { to: at, outcome: line.outcome });
      break;
    case 'release':
      attempt.releaseFrom = at;
      break;
    case 'released':
      attempt.releaseTo = at;
      break;
  }
}
