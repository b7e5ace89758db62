import { describe, expect, it } from '@jest/globals';
import { EventStream } from '../../lib/core/event-stream.js';
import { currentScope, runInScope, Scope } from '../../lib/core/scope.js';
import type { LockEvent } from '../../lib/lock.events.js';

const of = { name: 'stock', label: 'stock', owner: 'me' };
const usual: readonly LockEvent[] = [
  { type: 'acquired', ...of, fencingToken: 1, waited: 0, handedOff: false },
  { type: 'handed-over', ...of, fencingToken: 1, by: 'fleet' },
  { type: 'released', ...of, heldFor: 1 },
  { type: 'timed-out', ...of, waited: 1, reason: 'timeout', holder: undefined, holderLabel: undefined },
];
const lost: LockEvent = { type: 'lost', ...of, reason: 'expired', forced: undefined };

describe('The events of one client', () => {
  it('reach an observer of all of them, in the order in which they occur', () => {
    const events = new EventStream();
    const seen: LockEvent[] = [];
    events.subscribe((event) => seen.push(event));
    for (const event of [...usual, lost]) events.next(event);
    expect(seen).toEqual([...usual, lost]);
  });

  it('reach the log where they are unusual, whether others observe or not, and before them', () => {
    const events = new EventStream();
    const order: string[] = [];
    events.unusual.subscribe(({ type }) => order.push(`log: ${type}`));
    for (const event of [...usual, lost]) events.next(event);
    expect(order).toEqual(['log: lost']);
    events.subscribe(({ type }) => order.push(`other: ${type}`));
    events.next(lost);
    expect(order).toEqual(['log: lost', 'log: lost', 'other: lost']);
  });

  it('reach all of these outside of the scope in which they occur', () => {
    const events = new EventStream();
    const scopes: unknown[] = [];
    events.unusual.subscribe(() => scopes.push(currentScope()));
    events.subscribe(() => scopes.push(currentScope()));
    runInScope(Scope.within(undefined), () => {
      for (const event of [...usual, lost]) events.next(event);
    });
    expect(scopes).toEqual(Array.from({ length: usual.length + 2 }, () => undefined));
  });

  it('end for all of these', () => {
    const events = new EventStream();
    const ended: string[] = [];
    events.unusual.subscribe({ complete: () => ended.push('log') });
    events.subscribe({ complete: () => ended.push('other') });
    events.complete();
    expect(ended).toEqual(['log', 'other']);
  });
});
