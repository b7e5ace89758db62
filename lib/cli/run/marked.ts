import { runsOfProcess } from './mark.js';
import { allNumbers, entryOf, isSame, kill, type ProcessEntry } from './process-table.js';
import type { CommandProcesses, Processes } from './processes.js';

/** ms for one look at all processes of the machine. */
const LOOK = 500;
/** Looks for processes that were started while the others were ended. */
const LOOKS = 5;

/**
 * Beside the processes that a command is told through, those that have left them: with a session or group of their own, or
 * without their parents. They are known by the owner of the lease in their environment, which processes inherit. A process
 * whose environment cannot be read stays out.
 */
export class Marked implements Processes {
  private known: readonly ProcessEntry[] = [];

  constructor(
    private readonly command: CommandProcesses,
    private readonly root: number,
    private readonly owner: string,
  ) {}

  signal(signal: NodeJS.Signals): void {
    this.command.signal(signal);
    const told = new Set<string>();
    const tell = (entry: ProcessEntry) => {
      const key = `${String(entry.pid)} ${entry.start}`;
      if (told.has(key)) return false;
      told.add(key);
      if (isSame(entry)) kill(entry.pid, signal);
      return true;
    };
    if (signal !== 'SIGKILL') {
      for (const entry of this.look()) if (this.isLeft(entry)) tell(entry);
      return;
    }
    // Those that have been found before end without a look, at the moment that was asked for.
    this.known.forEach(tell);
    for (let looks = 0; looks < LOOKS && this.look().map(tell).includes(true); looks++);
  }

  alive(): boolean {
    return this.command.alive() || this.known.some(isSame) || this.look().length > 0;
  }

  /** No other is to tell it: the command's own means do not reach it, and no run inside of this one passes signals on to it. */
  private isLeft(entry: ProcessEntry): boolean {
    return !this.command.has(entry) && runsOfProcess(entry.pid).at(-1) === this.owner;
  }

  /** Processes that were found once stay known, even if their environment changes. */
  private look(): readonly ProcessEntry[] {
    const end = performance.now() + LOOK;
    const found = new Map(this.known.filter(isSame).map((entry) => [entry.pid, entry]));
    for (const pid of this.numbers()) {
      if (performance.now() > end) break;
      if (found.has(pid) || !isMarked(pid, this.owner)) continue;
      const entry = entryOf(pid);
      // Looked at again, because the number may have become another process's.
      if (entry !== undefined && isMarked(pid, this.owner)) found.set(pid, entry);
    }
    this.known = [...found.values()];
    return this.known;
  }

  /** Process ids grow until they wrap around, so processes of the command mostly have greater ids. */
  private numbers(): number[] {
    const numbers = allNumbers().sort((a, b) => a - b);
    const later = numbers.filter((pid) => pid > this.root);
    return [...later, ...numbers.slice(0, numbers.length - later.length)];
  }
}

const isMarked = (pid: number, owner: string): boolean => runsOfProcess(pid).includes(owner);
