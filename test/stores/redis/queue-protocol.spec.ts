import { describe, expect, it } from '@jest/globals';
import { MAX_REASON } from '../../../lib/api/asker.js';
import {
  askedText,
  forcedText,
  queueMessage,
  rivalsOf,
  storedLock,
  waiterOf,
  type Inspected,
} from '../../../lib/stores/redis/messages/queue-protocol.js';
import { ServerClocks } from '../../../lib/stores/redis/commands/server-clock.js';

const read = (text: string) => queueMessage(text, new ServerClocks());

describe('A message to a client', () => {
  it('grants its owner the lock, since the moment that the server has dated', () => {
    const clocks = new ServerClocks();
    clocks.of('node').learn(50_000, 5, 6);
    const message = queueMessage('granted a:1 17 50000 3000 node 2', clocks);
    expect(message).toEqual({
      type: 'granted',
      owner: 'a:1',
      fencingToken: 17,
      grantedAt: 4,
      leaseTime: 3_000,
      rivals: 'outside',
    });
    // From another server, whose clock is not known.
    expect(queueMessage('granted a:1 17 50000 3000 other 1', clocks)).toMatchObject({
      grantedAt: -Infinity,
      rivals: 'queued',
    });
  });

  it('grants it without a server and rivals where a single server has sent it', () => {
    expect(read('granted a:1 17 50000 3000')).toMatchObject({ grantedAt: -Infinity, rivals: 'none' });
  });

  it('tells when to ask again, and whether to subscribe to releases', () => {
    expect(read('next a:1 250 1')).toEqual({ type: 'next', owner: 'a:1', within: 250, listen: true });
    expect(read('next a:1 250 0')).toMatchObject({ listen: false });
    expect(read('next a:1 250')).toMatchObject({ listen: false });
  });

  it.each([
    '',
    'later a:1',
    'a:1',
    'next a:1',
    'next a:1 soon 1',
    'granted a:1 -1 50000 3000 node 2',
    'granted a:1 17 50000',
  ])('that is none of these makes its owner ask the store: %j', (text) => {
    expect(read(text)).toEqual({ type: 'missed', owner: text.split(' ')[1] ?? '' });
  });

  const asked = { owner: 'a:1', id: 'one', name: 'order:7', by: 'other', reason: 'it is late' };

  it('tells of a request, and of a forced release, with the asker and the reason', () => {
    expect(read(askedText(asked))).toEqual({ type: 'asked', ...asked });
    expect(read(askedText({ ...asked, reason: undefined }))).toEqual({
      type: 'asked',
      ...asked,
      reason: undefined,
    });
    const asker = { by: 'other', reason: 'it is late' };
    expect(read(forcedText('a:1', asker))).toEqual({ type: 'lost', owner: 'a:1', forced: asker });
    expect(read(forcedText('a:1', { by: 'other', reason: undefined }))).toEqual({
      type: 'lost',
      owner: 'a:1',
      forced: { by: 'other', reason: undefined },
    });
    expect(read(forcedText('a:1', undefined))).toEqual({ type: 'lost', owner: 'a:1' });
  });

  it('has a reason as long as one may be', () => {
    const [most, more] = [MAX_REASON, MAX_REASON + 1].map((length) => 'r'.repeat(length));
    expect(read(askedText({ ...asked, reason: most }))).toMatchObject({ type: 'asked', reason: most });
    expect(read(askedText({ ...asked, reason: more }))).toEqual({ type: 'lost', owner: 'a:1' });
    expect(read(askedText({ ...asked, by: most ?? '' }))).toMatchObject({ type: 'asked' });
    expect(read(askedText({ ...asked, by: more ?? '' }))).toEqual({ type: 'lost', owner: 'a:1' });
  });

  it.each([
    ['without the asker', { id: 'one', name: 'n' }],
    ['without its id', { by: 'b', name: 'n' }],
    ['without the name of the lock', { by: 'b', id: 'one' }],
    ['with an id that is no text', { by: 'b', id: 1, name: 'n' }],
    ['that is no object', 7],
    ['that is null', null],
  ])('about a request %s makes its owner look', (_, request) => {
    expect(read(`lost a:1 asked ${JSON.stringify(request)}`)).toEqual({ type: 'lost', owner: 'a:1' });
  });

  it.each([
    'lost a:1 forced {"by":',
    'lost a:1 other {"by":"b","id":"one","name":"n"}',
    `lost a:1 forced ${JSON.stringify({ by: 'b', more: 'x'.repeat(20_000) })}`,
  ])('that cannot be read makes its owner look: %.40s', (text) => {
    expect(read(text)).toEqual({ type: 'lost', owner: 'a:1' });
  });
});

it('rivals that a newer version tells of are none', () => {
  expect([0, 1, 2, 3, NaN].map(rivalsOf)).toEqual(['none', 'queued', 'outside', 'none', 'none']);
});

it('the client of an entry is what comes before the last colon of its owner', () => {
  expect(waiterOf('x a:b:1')).toBe('a:b');
  expect(waiterOf('s c:2')).toBe('c');
  expect(waiterOf('broken')).toBe('');
});

describe('What the store has of a lock', () => {
  const found = (parts: Partial<Inspected>): Inspected => ({
    fence: null,
    listeners: 0,
    holders: [],
    queue: [],
    withHolders: false,
    dead: [],
    ...parts,
  });

  it('is no token where the fence is none', () => {
    for (const fence of [null, 'text', '12x a:1', ''])
      expect(storedLock(found({ fence })).fencingToken).toBeUndefined();
    expect(storedLock(found({ fence: '12' })).fencingToken).toBe(12);
  });

  it('counts the first waiter once, which listens to releases of another library', () => {
    const queue: Inspected['queue'] = [['x a:1', 1_000]];
    const listeners = (parts: Partial<Inspected>) =>
      storedLock(found({ fence: '17 c:1', holders: [['redisson:1', 100]], listeners: 2, queue, ...parts }))
        .listeners;
    expect(listeners({})).toBe(1);
    // It does not listen: the holder is one of ours, or the waiter is dead, or of a kind that has no such listeners.
    expect(listeners({ fence: '17 redisson:1' })).toBe(2);
    expect(listeners({ dead: ['a'] })).toBe(2);
    expect(listeners({ withHolders: true })).toBe(2);
    expect(listeners({ queue: [] })).toBe(2);
    expect(listeners({ listeners: 0 })).toBe(0);
  });
});
