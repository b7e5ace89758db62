import type { Attempt, FaultInterval, History, Process } from '../history.js';

/** What a test says of an attempt; the rest is as in a history without faults. Undefined: it was never released. */
export type Told = Omit<Partial<Attempt>, 'releaseFrom'> & { releaseFrom?: number | undefined };

let count = 0;

/** A plain lock, asked for and granted at once, held for 10 ms under a lease of 100 ms. */
export function hold(granted: number, told: Told = {}): Attempt {
  const op = ++count;
  const releaseFrom = 'releaseFrom' in told ? told.releaseFrom : granted + 10;
  const attempt: Attempt = {
    process: 'A',
    op,
    lock: 'lock',
    kind: 'lock',
    mode: 'exclusive',
    capacity: 1,
    call: 'acquire',
    leaseTime: 100,
    renewed: true,
    invoked: granted - 1,
    granted,
    answered: granted,
    owner: `owner:${String(op)}`,
    token: granted + 1_000,
    deadlines: [{ at: granted, until: granted + 97 }],
    writes: [],
    extensions: [],
    ...(told as Partial<Attempt>),
  };
  if (releaseFrom === undefined) delete attempt.releaseFrom;
  else Object.assign(attempt, { releaseFrom, releaseTo: told.releaseTo ?? releaseFrom + 1 });
  return attempt;
}

/** An attempt that was told no. */
export function refused(invoked: number, answered: number, told: Partial<Attempt> = {}): Attempt {
  const attempt = hold(invoked, { ...told, releaseFrom: undefined });
  delete attempt.granted;
  delete attempt.owner;
  delete attempt.token;
  return { ...attempt, deadlines: [], invoked, answered, refusal: told.refusal ?? 'busy' };
}

export const lossOfData = (from: number, to: number): FaultInterval => ({
  fault: 'FLUSHALL',
  severity: 'loss',
  from,
  to,
});

/** Everybody ran all the time, nothing was left, and the run ended at 10,000 unless told otherwise. */
export function history(attempts: readonly Attempt[], told: Partial<History> = {}): History {
  const processes = new Map<string, Process>(
    attempts.map(({ process }) => [
      process,
      { name: process, lags: [], lastSeen: 10_000, ended: true, errors: [] },
    ]),
  );
  return {
    attempts,
    processes,
    server: { lags: [] },
    faults: [],
    updates: [],
    healed: 0,
    drained: 10_000,
    residue: { keys: [], channels: [], clients: 0, hanging: [] },
    queues: true,
    commands: undefined,
    confirmed: false,
    ...told,
  };
}

/** The processes of a history, one of which did not run for a while. */
export const lagging = (name: string, from: number, to: number): Map<string, Process> =>
  new Map([[name, { name, lags: [{ from, to }], lastSeen: 10_000, ended: true, errors: [] }]]);
