import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RestartQuarantine } from '../../../lib/stores/quorum/restart-quarantine.js';
import { type ScriptedMember, scriptedMembers } from './scripted-member.js';
import { LEASE, OLD, all, pass, voters } from './votes.js';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

/** When a member is looked at from now on, ms. */
function looksAt(member: ScriptedMember): number[] {
  const start = performance.now();
  const looks: number[] = [];
  const identify = member.identify.bind(member);
  member.identify = () => {
    looks.push(performance.now() - start);
    return identify();
  };
  return looks;
}

/** What a promise gives within this turn; undefined where it takes longer. */
async function atOnce<T>(promise: Promise<T>): Promise<T | undefined> {
  return await after(0, promise);
}

async function after<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let result: T | undefined;
  void promise.then((value) => (result = value));
  await pass(ms);
  return result;
}

const silence = (...silent: ScriptedMember[]) => {
  for (const member of silent) member.identify = () => new Promise(() => undefined);
};

describe('A process', () => {
  it('looks at a member in quarantine three times with a pause, and not again for a second', async () => {
    const members = scriptedMembers(3, OLD);
    const [young] = members as [ScriptedMember];
    const quarantine = new RestartQuarantine(members, LEASE);
    await voters(quarantine, members);
    young.restart();
    expect(await quarantine.mayVote(1)).toBe(true);
    await voters(quarantine, members);

    const looks = looksAt(young);
    expect(await after(60, quarantine.mayVote(0))).toBe(false);
    expect(looks).toEqual([0, 20, 40]);
    await pass(500);
    expect(await after(499, quarantine.mayVote(0))).toBe(false);
    expect(looks).toHaveLength(3);
    await pass(1);
    expect(await after(60, quarantine.mayVote(0))).toBe(false);
    expect(looks).toEqual([0, 20, 40, 1_060, 1_080, 1_100]);
  });

  it('leaves a note on a member that has restarted with the first look', async () => {
    const members = scriptedMembers(3, OLD);
    const [restarted] = members as [ScriptedMember];
    const quarantine = new RestartQuarantine(members, LEASE);
    await voters(quarantine, members);
    restarted.restart();
    expect(await atOnce(quarantine.mayVote(0))).toBeUndefined();
    expect(members.map(({ noted }) => noted)).toEqual(['0', undefined, undefined]);
  });

  it('looks once at a member for all that ask at the same time', async () => {
    const members = scriptedMembers(3, OLD);
    members[0]!.reachable = false;
    const looks = looksAt(members[0]!);
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await atOnce(Promise.all([0, 0, 0].map((index) => quarantine.mayVote(index))))).toEqual([
      false,
      false,
      false,
    ]);
    expect(looks).toHaveLength(1);
  });

  it('looks at no other member for one that does not answer', async () => {
    const members = scriptedMembers(3, OLD);
    const [away, ...others] = members as [ScriptedMember, ...ScriptedMember[]];
    away.reachable = false;
    const looks = looksAt(away);
    const looksAtOthers = others.map(looksAt);
    expect(await atOnce(new RestartQuarantine(members, LEASE).mayVote(0))).toBe(false);
    expect(looks).toEqual([0]);
    expect(looksAtOthers).toEqual([[], []]);
  });

  it('counts the vote of an old member as soon as a majority has told the time', async () => {
    const members = scriptedMembers(5, OLD);
    const [, , late, ...silent] = members as [ScriptedMember, ScriptedMember, ScriptedMember];
    const identify = late.identify.bind(late);
    late.identify = () => new Promise((resolve) => setTimeout(resolve, 600)).then(identify);
    silence(...silent);
    const asked = new RestartQuarantine(members, LEASE).mayVote(0);
    expect(await after(599, asked)).toBeUndefined();
    expect(await after(2, asked)).toBe(true);
  });

  it('counts the vote of a founder at once, also where no other member tells the time', async () => {
    const members = scriptedMembers(5);
    expect(await voters(new RestartQuarantine(members, LEASE), members)).toEqual(all(members, true));
    silence(...members.slice(2));
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await atOnce(quarantine.mayVote(0))).toBeUndefined();
    expect(await atOnce(quarantine.mayVote(1))).toBe(true);
  });

  it('founds a quorum with three looks at each member', async () => {
    const members = scriptedMembers(3);
    const looks = members.map(looksAt);
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await atOnce(quarantine.mayVote(0))).toBe(true);
    expect(looks.map((times) => times.length)).toEqual([3, 3, 3]);
    expect(await voters(quarantine, members)).toEqual(all(members, true));
    expect(looks.map((times) => times.length)).toEqual([3, 3, 3]);
  });

  it('waits a quarter of a second for the last member, before the quorum is not founded', async () => {
    const members = scriptedMembers(3);
    silence(members[2]!);
    const asked = new RestartQuarantine(members, LEASE).mayVote(0);
    // Then it looks at the member three more times.
    expect(await after(250 + 59, asked)).toBeUndefined();
    expect(await after(2, asked)).toBe(false);
  });

  it('waits for no silent member where it has counted a vote before', async () => {
    const members = scriptedMembers(3, OLD);
    const [young, , silent] = members as [ScriptedMember, ScriptedMember, ScriptedMember];
    young.reachable = false;
    const quarantine = new RestartQuarantine(members, LEASE);
    expect(await quarantine.mayVote(1)).toBe(true);
    young.restart();
    young.reachable = true;
    silent.reconnect();
    silence(silent);
    expect(await after(60, quarantine.mayVote(0))).toBe(false);
  });

  it('founds no quorum where a member answers only one of two looks', async () => {
    const members = scriptedMembers(3);
    const [, , third] = members as [ScriptedMember, ScriptedMember, ScriptedMember];
    const looks = looksAt(third);
    const identify = third.identify.bind(third);
    third.identify = async () => {
      const told = await identify();
      if (looks.length === 2) throw new Error('lost');
      return told;
    };
    expect(await after(60, new RestartQuarantine(members, LEASE).mayVote(0))).toBe(false);
    expect(members.map(({ noted }) => noted)).toEqual([undefined, undefined, undefined]);
  });

  it('founds a quorum whose last member answers within a quarter of a second', async () => {
    const members = scriptedMembers(3);
    const late = members[2]!;
    const identify = late.identify.bind(late);
    late.identify = () => new Promise((resolve) => setTimeout(resolve, 80)).then(identify);
    expect(await after(400, new RestartQuarantine(members, LEASE).mayVote(0))).toBe(true);
  });
});
