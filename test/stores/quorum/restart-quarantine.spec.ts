import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { RestartQuarantine } from '../../../lib/stores/quorum/restart-quarantine.js';
import type { Member } from '../../../lib/stores/quorum/member.js';
import { type ScriptedMember, scriptedMembers } from './scripted-member.js';
import { LEASE, OLD, all, pass, settle, voters } from './votes.js';

const HOUR = 3_600_000;

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

describe('a new quorum', () => {
  it('works at once, for every process', async () => {
    const members = scriptedMembers(5);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual(all(members, true));
    await pass(5_000);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual(all(members, true));
  });

  it('is founded by two processes at the same time', async () => {
    const members = scriptedMembers(5);
    const both = [new RestartQuarantine(members, LEASE), new RestartQuarantine(members, LEASE)];
    const votes = await Promise.all(both.map((quarantine) => voters(quarantine, members)));
    expect(votes).toEqual([all(members, true), all(members, true)]);
  });

  it('is not founded by a minority', async () => {
    const members = scriptedMembers(5);
    for (const member of members.slice(0, 3)) member.reachable = false;
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual(all(members, false));
    expect(members.map(({ noted }) => noted)).toEqual(all(members, false).map(() => undefined));
  });

  it('is not founded while a member is silent, which might know better; the others vote when they are old', async () => {
    const members = scriptedMembers(5);
    members[0]!.reachable = false;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, false));
    expect(members.map(({ noted }) => noted)).toEqual(members.map(() => undefined));
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual([false, true, true, true, true]);
  });

  it('is founded as soon as the last member has come', async () => {
    const members = scriptedMembers(3);
    members[0]!.reachable = false;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, false));
    members[0]!.reachable = true;
    members[0]!.restart();
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('is not founded of members of which one has been seen in an earlier run', async () => {
    const members = scriptedMembers(3);
    const [last, restarted] = members as [ScriptedMember, ScriptedMember];
    last.reachable = false;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, false));
    restarted.restart();
    last.reachable = true;
    expect(await voters(quarantine, members)).toEqual(all(members, false));
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('is no founder and bears a note that joins it later, until it is old', async () => {
    const members = scriptedMembers(3);
    const [late] = members as [ScriptedMember];
    late.reachable = false;
    const quarantine = new RestartQuarantine(members, LEASE);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    late.reachable = true;
    late.restart();
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    expect(late.noted).toMatch(/^[0-9a-f]+$/);
    // The others have restarted before anything was noted on them, and still this one tells that there was a quorum.
    for (const member of members.slice(1)) member.restart();
    const other = new RestartQuarantine(members, LEASE);
    expect(await voters(other, members)).toEqual(all(members, false));
    await pass(LEASE);
    expect(await voters(other, members)).toEqual(all(members, true));
  });

  it('is not founded by what was seen before another process has founded it', async () => {
    const members = scriptedMembers(3);
    const [first, second] = [new RestartQuarantine(members, LEASE), new RestartQuarantine(members, LEASE)];
    const third = members[2]!;
    third.reachable = false;
    expect(await voters(first, members)).toEqual(all(members, false));
    third.reachable = true;
    expect(await voters(second, members)).toEqual(all(members, true));
    // It forgets the locks that the second process has taken, and the first process has never seen it before.
    third.restart();
    expect(await voters(first, members)).toEqual([true, true, false]);
  });

  it('is not founded while its members come and go, so that none of them is looked at twice in one run', async () => {
    const members = scriptedMembers(3);
    const third = members[2]!;
    const identify = third.identify.bind(third);
    let looks = 0;
    third.identify = () => {
      if (++looks === 2) third.restart();
      return identify();
    };
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual(all(members, false));
    expect(looks).toBeGreaterThan(1);
  });

  it('has no founder that has restarted since it was noted, while another process founds the quorum', async () => {
    const members = scriptedMembers(3);
    const [first, ...others] = members as [ScriptedMember, ...ScriptedMember[]];
    // For one process the connection is lost without its knowledge.
    let isConnected = true;
    const { node, store, generation, isDown } = first;
    const seen: Member = {
      ...{ node, store, generation, isDown },
      outage: (name) => first.outage(name),
      identify: () => (isConnected ? first.identify() : Promise.reject(new Error('lost'))),
      note: (text) => first.note(text),
    };
    const quarantine = new RestartQuarantine([seen, ...others], LEASE);
    // Its notes to the others arrive late, when the first has restarted.
    const deliveries = others.map((member) => {
      const note = member.note.bind(member);
      const delivery = new Promise<() => void>((isSent) => {
        member.note = async (text) => {
          await new Promise<void>((resolve) => {
            isSent(resolve);
          });
          return await note(text);
        };
      });
      return { delivery, noteAtOnce: () => (member.note = note) };
    });
    const votes = Promise.all(members.map((_, index) => quarantine.mayVote(index)));
    await pass(100);
    expect(members.map(({ noted }) => noted)).toEqual([first.runId, undefined, undefined]);
    first.restart();
    isConnected = false;
    for (const { noteAtOnce } of deliveries) noteAtOnce();
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual(all(members, true));
    for (const { delivery } of deliveries) (await delivery)();
    expect(await settle(votes)).toEqual([false, true, true]);
  });

  it('keeps the founders of the process that was first, where two found it', async () => {
    const members = scriptedMembers(3);
    const second = members[1]!;
    const note = second.note.bind(second);
    // The other process has left its note between the look and the note of this one.
    second.note = async () => !(await note('0'));
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([true, false, true]);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([true, false, true]);
  });

  it('leaves notes that outlast the time for which a run is young, on founders and on what joins later', async () => {
    const members = scriptedMembers(3);
    const [first] = members as [ScriptedMember];
    const times: number[] = [];
    for (const member of members) {
      const note = member.note.bind(member);
      (member as Member).note = (text, time) => {
        times.push(time);
        return note(text);
      };
    }
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
    first.restart();
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    expect(first.noted).toBe('0');
    expect(times).toHaveLength(4);
    expect(Math.min(...times)).toBeGreaterThan(LEASE);
  });

  it('is not founded of servers that do not tell which run they are, which vote when they are old', async () => {
    const members = scriptedMembers(3);
    for (const member of members) member.runId = undefined;
    const noted = members.map((member) => jest.spyOn(member, 'note'));
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, false));
    for (const { mock } of noted) expect(mock.calls.map(([text]) => text)).toEqual(['0']);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('is none where an old server answers', async () => {
    const members = [...scriptedMembers(1, OLD), ...scriptedMembers(2)];
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([true, false, false]);
  });
});

describe('a node that has restarted', () => {
  it('does not vote before the longest lease ago, and then it does', async () => {
    const members = scriptedMembers(5, OLD);
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
    members[2]?.restart();
    expect(await voters(quarantine, members)).toEqual([true, true, false, true, true]);
    expect(quarantine.quarantineOf(2)).toBeGreaterThan(LEASE - 5_000);
    await pass(LEASE - 3_000);
    expect(await quarantine.mayVote(0)).toBe(true);
    expect(quarantine.quarantineOf(2)).toBeGreaterThan(0);
    await pass(3_000);
    expect(quarantine.quarantineOf(2)).toBe(0);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('does not pass for a founder of the quorum that it was in, for processes that know it and others', async () => {
    const members = scriptedMembers(3);
    const quarantine = new RestartQuarantine(members, LEASE);
    await voters(quarantine, members);
    members[0]?.restart();
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([false, true, true]);
  });

  it('does not bring a note of before along, which it had saved', async () => {
    const members = scriptedMembers(3);
    await voters(new RestartQuarantine(members, LEASE), members);
    const [saved] = members as [ScriptedMember];
    const { noted } = saved;
    saved.restart();
    saved.noted = noted;
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([false, true, true]);
  });

  it('is no reason to found it anew when all have restarted, for a process that knew them', async () => {
    const members = scriptedMembers(3, OLD);
    const quarantine = new RestartQuarantine(members, LEASE);
    await voters(quarantine, members);
    for (const member of members) member.restart();
    expect(await voters(quarantine, members)).toEqual(all(members, false));
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('is another server where an old replica has taken its place', async () => {
    const members = scriptedMembers(3, OLD);
    const quarantine = new RestartQuarantine(members, LEASE);
    await voters(quarantine, members);
    const [promoted] = scriptedMembers(1, OLD) as [ScriptedMember];
    members[0]!.generation++;
    members[0]!.identify = () => promoted.identify();
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('is waited for as long as the longest lease that was asked for before', async () => {
    const members = scriptedMembers(3, OLD);
    const quarantine = new RestartQuarantine(members, LEASE);
    await voters(quarantine, members);
    quarantine.learn(10 * LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
    members[0]?.restart();
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(9 * LEASE);
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
    // That one has ended long ago.
    members[0]?.restart();
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('is none where only the connection was lost', async () => {
    const members = scriptedMembers(3);
    const quarantine = new RestartQuarantine(members, LEASE);
    await voters(quarantine, members);
    for (const member of members) {
      member.noted = undefined;
      member.reconnect();
    }
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });
});

describe('a wall clock', () => {
  /** For a process that has not known it before, and with no note. */
  async function restart(member: ScriptedMember, forward: number): Promise<void> {
    member.restart();
    await pass(1_000);
    member.setClock(forward);
  }

  /** This process's clock alone is off. */
  function setOwnClock(ms: number, members: readonly ScriptedMember[]): void {
    jest.setSystemTime(Date.now() + ms);
    for (const member of members) member.clockOffset -= ms;
  }

  it('that is set forward makes no node older', async () => {
    const members = scriptedMembers(3, OLD);
    await restart(members[0]!, 2 * LEASE);
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(LEASE - 10_000);
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(10_000);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('that is set forward makes no node older where the one of this process is wrong in the same way', async () => {
    const members = scriptedMembers(5, OLD);
    await restart(members[0]!, 2 * LEASE);
    setOwnClock(2 * LEASE, members);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
  });

  it('that is set forward makes no node older where the clocks of most nodes are', async () => {
    const members = scriptedMembers(3, OLD);
    members[1]!.setClock(2 * LEASE);
    await restart(members[0]!, 2 * LEASE);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([false, true, true]);
  });

  it('that is set forward makes no node older before the others have told the time', async () => {
    const members = scriptedMembers(3, OLD);
    await restart(members[0]!, 2 * LEASE);
    setOwnClock(2 * LEASE, members);
    for (const member of members.slice(1)) {
      const identify = member.identify.bind(member);
      member.identify = () => new Promise((resolve) => setTimeout(resolve, 500)).then(identify);
    }
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual([false, true, true]);
  });

  it('of a node is judged when a majority has told the time, however late, and not when all have', async () => {
    const members = scriptedMembers(3, OLD);
    const [, late, silent] = members as [ScriptedMember, ScriptedMember, ScriptedMember];
    const identify = late.identify.bind(late);
    late.identify = () => new Promise((resolve) => setTimeout(resolve, 600)).then(identify);
    silent.identify = () => new Promise(() => undefined);
    expect(await settle(new RestartQuarantine(members, LEASE).mayVote(0))).toBe(true);
  });

  it('that has always been ahead costs a node at most one lease', async () => {
    const members = scriptedMembers(3, 10 * LEASE);
    members[0]!.clockOffset = 10 * LEASE;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('that has always been ahead costs a node at most one lease also where it does not tell which run it is', async () => {
    const members = scriptedMembers(3, 10 * LEASE);
    members[0]!.runId = undefined;
    members[0]!.clockOffset = 100 * LEASE;
    const quarantine = new RestartQuarantine(members, LEASE);
    for (let n = 0; n < 6; n++) {
      expect(await voters(quarantine, members)).toEqual([false, true, true]);
      await pass(LEASE / 15);
    }
    await pass(LEASE / 3);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('of this process that is behind does not make a new quorum of one in service', async () => {
    // The process has been running for long.
    await pass(HOUR);
    const members = scriptedMembers(3, 3 * LEASE);
    members[0]!.restart();
    setOwnClock(-10 * LEASE, members);
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, false));
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('that is set back does not make a new quorum of one in service', async () => {
    const members = scriptedMembers(3, 3 * LEASE);
    members[0]!.restart();
    for (const member of members.slice(1)) member.setClock(-10 * LEASE);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual(all(members, false));
  });
});

describe('the time of a quorum', () => {
  it('is that of the clock in the middle, µs, as soon as a majority has told it', async () => {
    const members = scriptedMembers(5, OLD);
    for (const [index, ahead] of [9_000, 0, 5_000, 100, 7_000].entries()) members[index]!.clockOffset = ahead;
    for (const member of members.slice(2)) member.reachable = false;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(quarantine.time).toBeUndefined();
    await voters(quarantine, members);
    expect(quarantine.time).toBeUndefined();
    for (const member of members) member.reachable = true;
    await voters(quarantine, members);
    const aheadOfThis = () => Math.round((quarantine.time ?? NaN) / 1_000 - Date.now());
    expect(aheadOfThis()).toBe(5_000);
    await pass(60_000);
    expect(aheadOfThis()).toBe(5_000);
    // Another run, with another clock.
    members[2]!.restart();
    members[2]!.clockOffset = 8_000;
    await voters(quarantine, members);
    expect(aheadOfThis()).toBe(7_000);
  });
});

describe('a machine that was suspended', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('knows the time of the quorum, whether it has looked at the members before or after', async () => {
    const members = scriptedMembers(3, OLD);
    const [before, after] = [new RestartQuarantine(members, LEASE), new RestartQuarantine(members, LEASE)];
    await voters(before, members);
    // The wall clock and the uptime of the machine have gone on, and those of the process have not.
    jest.setSystemTime(Date.now() + HOUR);
    const uptime = process.uptime.bind(process);
    jest.spyOn(process, 'uptime').mockImplementation(() => uptime() - HOUR / 1_000);
    await voters(after, members);
    for (const { time = NaN } of [before, after])
      expect(Math.abs(time / 1_000 - Date.now())).toBeLessThan(1_000);
  });
});

describe('a lease longer than the usual one', () => {
  it('puts no node into quarantine that was there when it was asked for, also where a usual one was before', async () => {
    const members = scriptedMembers(3, OLD);
    const [away] = members as [ScriptedMember];
    const quarantine = new RestartQuarantine(members, LEASE);
    away.reachable = false;
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    quarantine.learn(LEASE);
    await pass(1_000);
    away.restart();
    await pass(1_000);
    quarantine.learn(10 * LEASE);
    await pass(LEASE);
    away.reachable = true;
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('puts no node into quarantine that was there when it was asked for', async () => {
    const members = scriptedMembers(3, 2 * LEASE);
    const quarantine = new RestartQuarantine(members, LEASE);
    members[0]!.reachable = false;
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    quarantine.learn(100 * LEASE);
    members[0]!.reachable = true;
    for (const member of members) member.reconnect();
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });

  it('is the same whether or not there was another before', async () => {
    const members = scriptedMembers(3, OLD);
    const quarantine = new RestartQuarantine(members, LEASE);
    members[0]!.reachable = false;
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    quarantine.learn(10 * LEASE);
    await pass(11 * LEASE);
    members[0]!.restart();
    await pass(2 * LEASE);
    quarantine.learn(10 * LEASE);
    members[0]!.reachable = true;
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });
});

describe('a server that does not tell', () => {
  it('since when it runs never votes', async () => {
    const members = scriptedMembers(3, OLD);
    members[0]!.tellsUptime = false;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    expect(quarantine.quarantineOf(0)).toBe(Infinity);
  });

  it('which run it is votes when it is old enough, after every restart', async () => {
    const members = scriptedMembers(3, OLD);
    for (const member of members) member.runId = undefined;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
    members[0]?.restart();
    expect(await voters(quarantine, members)).toEqual([false, true, true]);
    await pass(LEASE);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
  });
});

describe('whatever happens to the nodes', () => {
  const event = fc.record({
    member: fc.integer({ min: 0, max: 4 }),
    what: fc.constantFrom('restart', 'reconnect', 'away', 'back', 'new process'),
    after: fc.integer({ min: 0, max: LEASE }),
  });

  it('none votes that has restarted less than a lease ago', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (events) => {
        const members = scriptedMembers(5, OLD);
        const processes = [new RestartQuarantine(members, LEASE)];
        await voters(processes[0]!, members);
        const restartedAt = members.map(() => -Infinity);
        for (const { member: index, what, after } of events) {
          const member = members[index]!;
          if (what === 'restart') {
            // With more of them the quorum has forgotten what it was, and passes for a new one.
            const young = restartedAt.filter((moment) => moment > performance.now() - LEASE - 10_000);
            if (young.length < 2) {
              member.restart();
              restartedAt[index] = performance.now();
            }
          }
          if (what === 'reconnect') member.reconnect();
          if (what === 'away' || what === 'back') member.reachable = what === 'back' || index > 1;
          if (what === 'new process') processes.push(new RestartQuarantine(members, LEASE));
          await pass(after);
          for (const quarantine of processes) {
            const asked = performance.now();
            const votes = await voters(quarantine, members);
            votes.forEach((vote, n) => {
              if (asked + 2_000 < restartedAt[n]! + LEASE) expect(vote).toBe(false);
            });
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});
