import { describe, expect, it } from '@jest/globals';
import { decodeNote, encodeNote, type NotedWait } from '../../../lib/client/deadlock/wait-notes.js';

describe('a note', () => {
  const wait: NotedWait = {
    ...{ id: 'p/1', since: 1, name: 'a', label: 'a', mode: 'shared', permits: 3 },
    ...{ holds: ['p:1'], breaks: true },
  };
  const note = { process: 'p', stamp: 7, waits: [wait, { ...wait, permits: undefined, mode: 'exclusive' }] };

  it('is read as it was written', () => {
    expect(decodeNote(encodeNote(note as Parameters<typeof encodeNote>[0]))).toEqual(note);
    expect(decodeNote(undefined)).toBeUndefined();
  });

  it.each<[string, object]>([
    ['another version', { version: 2 }],
    ['no process', { process: 5 }],
    ['no stamp', { stamp: '7' }],
    ['no waits', { waits: {} }],
    ['a wait that is none', { waits: [wait, null] }],
    ['a wait that is a text', { waits: ['p/1'] }],
    ['no id', { waits: [{ ...wait, id: 5 }] }],
    ['no name', { waits: [{ ...wait, name: undefined }] }],
    ['no label', { waits: [{ ...wait, label: null }] }],
    ['no beginning', { waits: [{ ...wait, since: '1' }] }],
    ['another mode', { waits: [{ ...wait, mode: 'upgrade' }] }],
    ['permits that are no number', { waits: [{ ...wait, permits: '3' }] }],
    ['no word on whether it breaks', { waits: [{ ...wait, breaks: 1 }] }],
    ['no holds', { waits: [{ ...wait, holds: 'p:1' }] }],
    ['a hold that is no owner', { waits: [{ ...wait, holds: ['p:1', 2] }] }],
  ])('with %s is none', (_, part) => {
    const text = JSON.stringify({
      ...(JSON.parse(encodeNote({ ...note, waits: [wait] })) as object),
      ...part,
    });
    expect(decodeNote(text)).toBeUndefined();
  });

  it.each(['', 'null', '{', '5', '[]'])('of the text %j is none', (text) => {
    expect(decodeNote(text)).toBeUndefined();
  });
});
