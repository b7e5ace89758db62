import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** A process that has not ended, as the system lists it. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** When it was started, in words of the system. A number is given to other processes later, and not with the same start. */
  readonly start: string;
}

const isLinux = process.platform === 'linux';

/** All processes that this system shows; none if it shows none. */
export function allProcesses(): ProcessEntry[] {
  if (!isLinux) return listedBy('-A');
  return allNumbers()
    .map(entryOf)
    .filter((entry) => entry !== undefined);
}

/** The numbers of all processes, without a look at them. */
export function allNumbers(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** Undefined for one that has ended, also if its parent has not asked for its exit code yet. */
export function entryOf(pid: number): ProcessEntry | undefined {
  if (!isLinux) return listedBy('-p', String(pid))[0];
  try {
    const text = readFileSync(`/proc/${String(pid)}/stat`, 'latin1');
    // The name of the program stands in parentheses, and may hold more of them.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const [state = '', parent, group] = fields;
    if ('ZX'.includes(state)) return undefined;
    return { pid, parent: Number(parent), group: Number(group), start: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

/** Whether it is still the process that was listed, and not a later one with its number. */
export const isSame = ({ pid, start }: ProcessEntry): boolean => entryOf(pid)?.start === start;

/** Whether there is such a process, or group with a minus before its number, that could be told. */
export function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** By the program that each Unix has. */
function listedBy(...which: readonly string[]): ProcessEntry[] {
  const columns = ['pid', 'ppid', 'pgid', 'stat', 'lstart'].flatMap((column) => ['-o', `${column}=`]);
  let text = '';
  try {
    const stdio = ['ignore', 'pipe', 'ignore'] as const;
    text = execFileSync('ps', [...which, ...columns], { encoding: 'utf8', stdio: [...stdio] });
  } catch {
    // There is no such process.
  }
  const rows = [...text.matchAll(/^ *(\d+) +(\d+) +(\d+) +(\S+) +(\S.*)$/gm)];
  return rows
    .filter(([, , , , state = '']) => !state.startsWith('Z'))
    .map(([, pid, parent, group, , start = '']) => ({
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      start: start.trim(),
    }));
}
