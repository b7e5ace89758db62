import { isOfInnerRun } from './mark.js';
import { allProcesses, entryOf, isSame, kill, type ProcessEntry } from './process-table.js';

/** The processes of a command, its own children included. */
export interface Processes {
  /** To all of them. */
  signal(signal: NodeJS.Signals): void;
  /** Whether one of them still runs. */
  alive(): boolean;
}

export interface CommandProcesses extends Processes {
  /** Whether this is one of them. */
  has(entry: ProcessEntry): boolean;
}

/**
 * A process group of its own, which its children stay in unless they leave it. The system gives the number of a group to no
 * process as long as a member is left.
 */
export class Group implements CommandProcesses {
  constructor(private readonly leader: number) {}

  signal(signal: NodeJS.Signals): void {
    kill(-this.leader, signal);
  }

  alive(): boolean {
    return kill(-this.leader, 0);
  }

  has({ group }: ProcessEntry): boolean {
    return group === this.leader;
  }
}

/**
 * A process in the group of this program and of the shell before it: it has the terminal. Its descendants are found by their
 * parents. Those that have lost theirs before are remembered only if they were found before.
 */
export class Family implements CommandProcesses {
  private readonly known = new Map<number, ProcessEntry>();

  /** @param owner of the lease that the command runs under */
  constructor(
    root: number,
    private readonly owner: string,
  ) {
    const entry = entryOf(root);
    if (entry !== undefined) this.known.set(root, entry);
  }

  signal(signal: NodeJS.Signals): void {
    for (const member of this.members()) {
      if (signal !== 'SIGKILL' && isOfInnerRun(member.pid, this.owner)) continue;
      if (isSame(member)) kill(member.pid, signal);
    }
  }

  alive(): boolean {
    return [...this.known.values()].some(isSame) || this.members().length > 0;
  }

  has({ pid, start }: ProcessEntry): boolean {
    return this.known.get(pid)?.start === start;
  }

  private members(): readonly ProcessEntry[] {
    const children = new Map<number, ProcessEntry[]>();
    const all = allProcesses();
    for (const entry of all) children.set(entry.parent, [...(children.get(entry.parent) ?? []), entry]);
    const found = new Map<number, ProcessEntry>();
    const visit = (entry: ProcessEntry): void => {
      if (found.has(entry.pid)) return;
      found.set(entry.pid, entry);
      for (const child of children.get(entry.pid) ?? []) visit(child);
    };
    for (const entry of all) if (this.has(entry)) visit(entry);
    this.known.clear();
    for (const [pid, entry] of found) this.known.set(pid, entry);
    return [...found.values()];
  }
}
