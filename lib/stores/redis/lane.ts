import type { AcquisitionGuard, Argument } from './deployment.js';
import type { Script } from './script.js';
import { atEndOfTurn } from '../../lock.turn.js';

/** A script that is to run. */
export interface Call {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
  readonly acquisition: AcquisitionGuard | undefined;
  /** Calls of one group may share a command. */
  readonly group: number;
  /** The end of its time, on the monotonic clock. */
  readonly until: number;
  /** The node has been named by ASK: its slot is still on the way there. */
  readonly asking: boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Calls of one command: the server takes about 10 µs for one, and works at one command while the next is made.
 */
const MOST = 32;
/** A renewal or a multi-lock has many keys, and takes as long as so many calls. */
const MOST_KEYS = 4 * MOST;

/**
 * Collects what is asked of one server in one turn of the event loop, so that it travels as one command: the command
 * is what costs, on both sides, and not what the script does.
 */
export class Lane {
  private calls: Call[] = [];
  private keys = 0;

  /** @param send carries out the calls of each group, in their order */
  constructor(private readonly send: (groups: readonly (readonly Call[])[]) => void) {}

  get isEmpty(): boolean {
    return this.calls.length === 0;
  }

  add(call: Call): void {
    if (this.isEmpty) atEndOfTurn(this.flush);
    this.calls.push(call);
    this.keys += call.keys.length;
    if (this.calls.length >= MOST || this.keys >= MOST_KEYS) this.flush();
  }

  readonly flush = (): void => {
    if (this.isEmpty) return;
    const { calls } = this;
    this.calls = [];
    this.keys = 0;
    this.send(groupsOf(calls));
  };
}

function groupsOf(calls: readonly Call[]): readonly (readonly Call[])[] {
  const [first] = calls;
  if (calls.every(({ group }) => group === first?.group)) return [calls];
  const groups = new Map<number, Call[]>();
  for (const call of calls) {
    const group = groups.get(call.group);
    if (group === undefined) groups.set(call.group, [call]);
    else group.push(call);
  }
  return [...groups.values()];
}
