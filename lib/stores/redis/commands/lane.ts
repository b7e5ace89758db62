import { atEndOfTurn } from '../../../runtime/runtime.js';
import type { AcquisitionGuard, Argument } from './command.js';
import type { Script } from './script.js';

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
  /** The node was named by ASK: the slot is still on the way there. */
  readonly asking: boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The most calls of one command: the server takes about 10 µs for one call, and works at one command while the client makes
 * the next.
 */
const MOST = 32;
/**
 * The most keys of one command: a renewal or a multi-lock has many keys, and takes as long as that many calls. A call with
 * more keys travels by itself. lane.lua could not unpack some 8,000 of them, and would fail for all its calls.
 */
export const MOST_KEYS = 4 * MOST;

/**
 * Collects the calls to one server in one turn of the event loop, so that they travel as one command. The command is the
 * cost on both sides, and not the work of the script.
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
