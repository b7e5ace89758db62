import { readFileSync } from 'node:fs';

/** Holds the owners of the leases that a process runs under, the outermost first. */
export const MARK = 'LOCK_RUNS';

type Environment = Readonly<Record<string, string | undefined>>;

/** The runs that a process with this environment is inside of. */
export const runsOf = (environment: Environment): string[] => listOf(environment[MARK] ?? '');

/** The value of the variable for a command that runs under one more lease. */
export const markedWith = (owner: string, environment: Environment): string =>
  [...runsOf(environment), owner].join(',');

/**
 * The runs of another process, as its environment was when its program started. None if the system does not show it: on
 * other systems than Linux, of other users, and of a program that has cleared or overwritten it.
 */
export function runsOfProcess(pid: number): string[] {
  try {
    const variables = readFileSync(`/proc/${String(pid)}/environ`, 'latin1').split('\0');
    const found = variables.find((variable) => variable.startsWith(`${MARK}=`));
    return listOf(found?.slice(MARK.length + 1) ?? '');
  } catch {
    return [];
  }
}

/** Whether the process belongs to a run inside of this one, which passes signals on itself. */
export function isOfInnerRun(pid: number, owner: string): boolean {
  const runs = runsOfProcess(pid);
  return runs.includes(owner) && runs.at(-1) !== owner;
}

const listOf = (text: string): string[] => text.split(',').filter(Boolean);
