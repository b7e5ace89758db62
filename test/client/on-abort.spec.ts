import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { onAbort } from '../../lib/client/waiting/on-abort.js';

describe('onAbort', () => {
  let controller: AbortController;
  let called: string[];
  const call = (name: string) => () => void called.push(name);
  const listeners = () => getEventListeners(controller.signal, 'abort').length;

  beforeEach(() => {
    controller = new AbortController();
    called = [];
  });

  it('calls each back once, in order, and leaves no listener', () => {
    for (const name of ['a', 'b', 'c']) onAbort(controller.signal, call(name));
    expect(listeners()).toBe(1);
    controller.abort();
    controller.abort();
    expect(called).toEqual(['a', 'b', 'c']);
    expect(listeners()).toBe(0);
  });

  it('calls back at once where the signal has aborted', () => {
    controller.abort();
    onAbort(controller.signal, call('a'))();
    expect(called).toEqual(['a']);
    expect(listeners()).toBe(0);
  });

  it('does not call back a listener that has ended it, and leaves no listener with the last one', () => {
    const [first, second] = [onAbort(controller.signal, call('a')), onAbort(controller.signal, call('b'))];
    first();
    expect(listeners()).toBe(1);
    second();
    expect(listeners()).toBe(0);
    onAbort(controller.signal, call('c'));
    // Ended twice: that is no matter of those who came later.
    second();
    controller.abort();
    expect(called).toEqual(['c']);
  });

  it('may be ended by another of them, while they are called', () => {
    const ends: (() => void)[] = [];
    ends.push(
      onAbort(controller.signal, () => ends[1]?.()),
      onAbort(controller.signal, call('b')),
    );
    controller.abort();
    expect(called).toEqual([]);
  });
});
