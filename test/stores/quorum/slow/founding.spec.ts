import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { Charters } from '../../../../lib/stores/quorum/charters.js';
import { quorumOf } from '../../../../lib/stores/quorum/member.js';
import { Quorum } from '../../../../lib/stores/quorum/quorum.js';
import { ScriptedMember } from '../scripted-member.js';

const LEASE = 30_000;
/** ms between two events: all of a schedule happens within one lease. */
const STEP = 50;

interface Lock {
  readonly process: number;
  readonly until: number;
}

/** What happens to one member. A member that has not been started yet is started by its restart. */
interface Event {
  readonly what: 'restart' | 'silence' | 'return';
  readonly member: number;
}

/** Members that remember locks until they restart, and processes that take one lock by the votes that count. */
class World {
  readonly members: ScriptedMember[];
  readonly processes: Charters[] = [];
  private readonly memories: Lock[][];
  /** When each of them was started the last time. */
  readonly startedAt: number[];

  constructor(count: number, late: readonly number[]) {
    this.members = Array.from({ length: count }, (_, n) => new ScriptedMember(`node-${String(n)}`));
    this.memories = this.members.map(() => []);
    this.startedAt = this.members.map(() => performance.now());
    for (const index of late) this.members[index]!.reachable = false;
  }

  join(): number {
    return this.processes.push(new Quorum(this.members, LEASE).charters) - 1;
  }

  /** What happens to every process when a connection comes back. */
  async look(process: number): Promise<boolean[]> {
    const quarantine = this.processes[process]!;
    const looking = Promise.all(this.members.map((_, index) => quarantine.mayVote(index)));
    await jest.advanceTimersByTimeAsync(500);
    return await looking;
  }

  /** Asks the members at once, and once more for each process that has come too early. */
  async take(process: number): Promise<Lock | undefined> {
    const votes = await this.look(process);
    const now = performance.now();
    const lock = { process, until: now + LEASE };
    const granting = this.memories.filter(
      (memory, index) =>
        this.members[index]!.reachable &&
        votes[index] === true &&
        memory.every((held) => held.until <= now || held.process === process),
    );
    if (granting.length < quorumOf(this.members.length)) return undefined;
    for (const memory of granting) memory.push(lock);
    return lock;
  }

  happen({ what, member: index }: Event): void {
    const member = this.members[index]!;
    if (what !== 'restart') {
      member.reachable = what === 'return';
      return;
    }
    member.reachable = true;
    member.restart();
    this.memories[index] = [];
    this.startedAt[index] = performance.now();
  }
}

/** Whether a process that does not know the quorum gets a lock which another one holds. */
async function breaks(
  count: number,
  late: readonly number[],
  events: readonly Event[],
  watched: boolean,
): Promise<boolean> {
  const world = new World(count, late);
  const holder = world.join();
  let held: Lock | undefined;
  // At once, or when the members are old enough.
  for (let n = 0; n < 2 && held === undefined; n++) {
    held = await world.take(holder);
    if (held === undefined) await jest.advanceTimersByTimeAsync(LEASE);
  }
  if (held === undefined) return false;
  const since = performance.now();
  const chartered = world.members.map(({ chartered, runId }) => chartered?.run === runId);
  for (const event of events) {
    world.happen(event);
    await jest.advanceTimersByTimeAsync(STEP);
    if (watched) await world.look(holder);
  }
  const second = world.join();
  let broken = false;
  for (let n = 0; n < 2 && !broken; n++) {
    broken = (await world.take(second)) !== undefined && performance.now() < held.until;
  }
  // All members with a charter have started anew, and no process in service has seen one of them since: that is a new quorum.
  return (
    broken &&
    (watched || world.startedAt.some((started, index) => chartered[index] === true && started < since))
  );
}

function* schedules(events: readonly Event[], length: number): Generator<readonly Event[]> {
  yield [];
  if (length === 0) return;
  for (const event of events) for (const rest of schedules(events, length - 1)) yield [event, ...rest];
}

const eventsOf = (count: number): Event[] =>
  Array.from({ length: count }, (_, member) => member).flatMap((member) =>
    (['restart', 'silence', 'return'] as const).map((what) => ({ what, member })),
  );

describe('A process that does not know the quorum', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    { late: [], watched: true },
    { late: [], watched: false },
    { late: [2], watched: true },
    { late: [2], watched: false },
  ])(
    'gets no lock that is held, whatever has happened to three members ($late late, seen by the holder: $watched)',
    async ({ late, watched }) => {
      const broken: (readonly Event[])[] = [];
      let tried = 0;
      for (const events of schedules(eventsOf(3), 3)) {
        // Shorter ones are among those that do nothing at the end.
        if (events.length < 3) continue;
        tried++;
        if (await breaks(3, late, events, watched)) broken.push(events);
      }
      expect(tried).toBe(9 ** 3);
      expect(broken).toEqual([]);
    },
  );

  it('gets no lock that is held, whatever has happened to five members of which two were late', async () => {
    const event = fc.constantFrom(...eventsOf(5));
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 8 }), fc.boolean(), async (events, watched) => {
        expect(await breaks(5, [3, 4], events, watched)).toBe(false);
      }),
      { numRuns: 150 },
    );
  });
});
