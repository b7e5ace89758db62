import { describe, expect, it } from '@jest/globals';
import {
  currentScope,
  inThisScope,
  owningScope,
  runInScope,
  runOutsideScopes,
  Scope,
  type ScopedHold,
} from '../../lib/core/scope.js';

const hold = (name: string, held = true): ScopedHold & { held: boolean } => ({
  ...{ name, held, clientId: 'p', owner: `p:${name}`, endsAt: Infinity, group: name, isInUse: false },
});
const countOf = (scope: Scope, key: string) => [...scope.holdsOf(key)].filter(({ held }) => held).length;
const lease = (name: string, ...members: string[]) => ({
  name,
  fencingTokens: new Map(members.map((member) => [member, 1])),
});

describe('a scope', () => {
  it('finds what is held in it and further out, and nothing of its branches', () => {
    const outer = Scope.within(undefined);
    const inner = Scope.within(outer);
    const branch = Scope.within(outer);
    const [a, b] = [hold('a'), hold('b')];
    expect([inner.find('a'), countOf(inner, 'a'), inner.holds('a'), inner.holds(undefined)]).toEqual([
      undefined,
      0,
      false,
      false,
    ]);
    outer.add('a', a);
    inner.add('b', b);
    expect([inner.find('a'), inner.find('b'), outer.find('b'), branch.find('b')]).toEqual([
      a,
      b,
      undefined,
      undefined,
    ]);
    expect([inner.holds('b'), outer.holds('b'), outer.holds('a'), branch.holds(undefined)]).toEqual([
      true,
      false,
      true,
      true,
    ]);
    a.held = false;
    expect([branch.holds(undefined), branch.holds('a'), countOf(inner, 'a'), inner.isUnderLock()]).toEqual([
      false,
      false,
      0,
      true,
    ]);
    // What is lost is found all the same: its user has to be told.
    expect(branch.find('a')).toBe(a);
  });

  it('has a hold until each lease that has added it takes it back', () => {
    const [scope, a] = [Scope.within(undefined), hold('a')];
    const [first, second] = [scope.add('a', a), scope.add('a', a)];
    first();
    expect(scope.find('a')).toBe(a);
    second();
    expect([scope.find('a'), scope.holds('a')]).toEqual([undefined, false]);
    second();
    const third = scope.add('a', a);
    expect(scope.find('a')).toBe(a);
    third();
    expect(scope.find('a')).toBeUndefined();
  });

  it('counts several holds under one key, in all scopes around', () => {
    const outer = Scope.within(undefined);
    const inner = Scope.within(outer);
    const ends = [outer.add('s', hold('1')), inner.add('s', hold('2')), inner.add('s', hold('3'))];
    expect([countOf(outer, 's'), countOf(inner, 's')]).toEqual([1, 3]);
    ends[1]?.();
    expect([countOf(outer, 's'), countOf(inner, 's')]).toEqual([1, 2]);
    ends[2]?.();
    expect([countOf(inner, 's'), inner.find('s')]).toEqual([1, outer.find('s')]);
    ends[0]?.();
    expect(inner.find('s')).toBeUndefined();
  });

  it('has, when it has ended, what the nearest scope further out has that still runs', () => {
    const first = Scope.within(undefined);
    const second = Scope.within(first);
    const third = Scope.within(second);
    const a = hold('a');
    first.add('a', a);
    second.add('b', hold('b'));
    third.add('c', hold('c'));
    second.lease = lease('b');
    second.end();
    expect([third.find('b'), third.find('a'), third.innermostLease()]).toEqual([undefined, a, undefined]);
    expect([second.alive(), third.alive()]).toEqual([first, third]);
    third.end();
    expect([third.alive(), third.find('c'), third.find('a')]).toEqual([first, undefined, a]);
    const late = Scope.within(third);
    expect(late.find('a')).toBe(a);
    first.end();
    expect([third.alive(), second.alive(), late.find('a'), late.holds(undefined)]).toEqual([
      undefined,
      undefined,
      undefined,
      false,
    ]);
  });

  it('apart from others shares none of their holds, and is under their locks', () => {
    const around = Scope.within(undefined);
    const [a, gone] = [hold('a'), hold('gone', false)];
    around.add('a', a);
    around.add('gone', gone);
    const apart = Scope.apart(around);
    expect([apart.ownsHandMade, around.ownsHandMade]).toEqual([true, false]);
    expect([apart.find('a'), apart.holds(undefined), apart.isUnderLock()]).toEqual([undefined, false, true]);
    expect(apart.near()).toEqual([a]);
    expect(Scope.within(apart).near()).toEqual([a]);
    gone.held = true;
    expect(apart.near()).toEqual([a]);
    a.held = false;
    expect([apart.near(), apart.isUnderLock()]).toEqual([[], false]);
    expect(Scope.apart(undefined).isUnderLock()).toBe(false);
  });

  it('that accompanies another is of its own parent, and under the locks around it', () => {
    const around = Scope.within(undefined);
    const a = hold('a');
    around.add('a', a);
    const owning = Scope.apart(undefined);
    const b = hold('b');
    owning.add('b', b);
    const [beside, alone] = [Scope.accompanying(owning, around), Scope.accompanying(undefined, around)];
    expect([beside.ownsHandMade, alone.ownsHandMade]).toEqual([true, false]);
    expect([beside.find('a'), beside.find('b')]).toEqual([undefined, b]);
    expect(beside.near()).toEqual([a, b]);
    expect([alone.near(), alone.isUnderLock()]).toEqual([[a], true]);
    expect(Scope.accompanying(around, around).ownsHandMade).toBe(false);
  });

  it('tells what is held around it, the nearest first, from a bounded number of scopes', () => {
    let scope = Scope.within(undefined);
    const [far, near] = [hold('far'), hold('near')];
    scope.add('far', far);
    for (let step = 0; step < 31; step++) scope = Scope.within(scope);
    expect(scope.near()).toEqual([far]);
    scope = Scope.within(scope);
    expect(scope.near()).toEqual([]);
    scope.add('near', near);
    expect(scope.near()).toEqual([near]);
    near.held = false;
    expect(scope.near()).toEqual([]);
  });

  it('without a lock on purpose passes through, with all that runs in it', () => {
    const unlocked = Scope.unlocked(undefined);
    const inside = Scope.within(unlocked);
    expect([unlocked.passesThrough(), inside.passesThrough()]).toEqual([true, true]);
    expect(Scope.within(undefined).passesThrough()).toBe(false);
    unlocked.end();
    expect(inside.passesThrough()).toBe(false);
  });

  it('knows the innermost lease, of a name or of any', () => {
    const outer = Scope.within(undefined);
    const inner = Scope.within(outer);
    expect(inner.innermostLease()).toBeUndefined();
    outer.lease = lease('a,b', 'a', 'b');
    inner.lease = lease('c', 'c');
    expect([inner.innermostLease(), outer.innermostLease()]).toEqual([inner.lease, outer.lease]);
    for (const name of ['a,b', 'a', 'b']) expect(inner.innermostLease(name)).toBe(outer.lease);
    expect([inner.innermostLease('c'), inner.innermostLease('d')]).toEqual([inner.lease, undefined]);
    inner.lease = undefined;
    expect(inner.innermostLease()).toBe(outer.lease);
  });
});

describe('running code', () => {
  it('is in the scope that it was started in, and owns what is acquired by hand where that scope does', () => {
    const [scope, owning] = [Scope.within(undefined), Scope.apart(undefined)];
    expect([currentScope(), owningScope()]).toEqual([undefined, undefined]);
    expect(runInScope(scope, () => [currentScope(), owningScope()])).toEqual([scope, undefined]);
    const later = runInScope(owning, () => {
      expect([currentScope(), owningScope()]).toEqual([owning, owning]);
      expect(runOutsideScopes(() => [currentScope(), owningScope()])).toEqual([undefined, undefined]);
      return inThisScope(() => currentScope());
    });
    expect([later(), runInScope(scope, later)]).toEqual([owning, owning]);
    expect(runOutsideScopes(() => 5)).toBe(5);
    owning.end();
    expect(runInScope(owning, () => currentScope())).toBeUndefined();
  });
});
