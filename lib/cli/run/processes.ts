import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The processes of a command, its own children included. */
export interface Processes {
  /** To all of them. */
  signal(signal: NodeJS.Signals): void;
  /** Whether one of them still runs. */
  alive(): boolean;
}

/** A process group of its own, which its children stay in unless they leave it. */
export class Group implements Processes {
  constructor(private readonly leader: number) {}

  signal(signal: NodeJS.Signals): void {
    kill(-this.leader, signal);
  }

  alive(): boolean {
    return kill(-this.leader, 0);
  }
}

/**
 * A process in the group of this program and of the shell before it: it has the terminal. Its descendants are found by their
 * parents. Those that have lost theirs before are remembered only if they were found before.
 */
export class Family implements Processes {
  private readonly known = new Set<number>();

  constructor(private readonly root: number) {}

  signal(signal: NodeJS.Signals): void {
    for (const member of this.members()) kill(member, signal);
  }

  alive(): boolean {
    return [...this.members()].some((member) => kill(member, 0));
  }

  private members(): ReadonlySet<number> {
    for (const member of this.known) if (!kill(member, 0)) this.known.delete(member);
    const visit = (pid: number): void => {
      this.known.add(pid);
      for (const child of childrenOf(pid)) visit(child);
    };
    for (const member of [this.root, ...this.known]) visit(member);
    return this.known;
  }
}

/** Whether there is such a process, or group, that could be told. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

function childrenOf(pid: number): number[] {
  const text = process.platform === 'linux' ? childrenFile(pid) : undefined;
  const found = text ?? execFileSync('sh', ['-c', `pgrep -P ${String(pid)} || true`], { encoding: 'utf8' });
  return found.split(/\s+/).filter(Boolean).map(Number);
}

/** Undefined where the system has no such file. */
function childrenFile(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8');
  } catch {
    return undefined;
  }
}
