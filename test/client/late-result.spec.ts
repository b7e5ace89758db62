import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { StreamableFile } from '@nestjs/common';
import { of } from 'rxjs';
import {
  assertFinished,
  assertNotLate,
  isPipedInto,
  isSentLater,
  isThenable,
  isUnfinished,
  lateResult,
  refusalOfHandedOut,
  settled,
} from '../../lib/client/holding/late-result.js';

const response = () => new ServerResponse(new IncomingMessage(new Socket()));
const piped = () => {
  const answer = response();
  new PassThrough().pipe(answer);
  return answer;
};

describe('a late result', () => {
  it('a Response with an unread body is late, and one without a body or with a read one is not', async () => {
    const answer = new Response('seats');
    expect(lateResult(answer)).toBe('a Response');
    await answer.text();
    expect(lateResult(answer)).toBeUndefined();
    expect(lateResult(new Response(null))).toBeUndefined();
  });

  const ended = new PassThrough();
  ended.destroy();
  it.each<[string | undefined, string, unknown]>([
    ['a Promise', 'a Promise', Promise.resolve()],
    ['a Promise', 'a thenable function', Object.assign(() => 1, { then: () => 1 })],
    ['a stream', 'a stream that has not been read', new Readable({ read: () => undefined })],
    ['a stream', 'a web stream', new ReadableStream()],
    ['a StreamableFile', 'a file', new StreamableFile(new Readable({ read: () => undefined }))],
    ['a response', 'a response that a stream answers', piped()],
    ['an iterator', 'an iterator', [1].values()],
    ['an async iterator', 'an async iterator', { [Symbol.asyncIterator]: () => undefined }],
    [undefined, 'an object whose then is no function', { then: 5 }],
    [undefined, 'a response without a stream', response()],
    [undefined, 'a stream that has ended', ended],
    [undefined, 'a stream that has no source', new Readable()],
    [undefined, 'a file of bytes', new StreamableFile(Buffer.from('rows'))],
    [undefined, 'a file without a stream', { getStream: () => undefined, getHeaders: () => ({}) }],
    [undefined, 'a linked list', { [Symbol.iterator]: () => undefined, next: {} }],
    [undefined, 'a row with a next', { next: () => undefined }],
    [undefined, 'an object that pipes and does not read', { pipe: () => undefined }],
    [undefined, 'an object with a stream that is none', { getStream: 5, getHeaders: 5 }],
    [undefined, 'an object that gives a stream', { getStream: () => new PassThrough() }],
    [undefined, 'null', null],
    [undefined, 'a text', 'rows'],
  ])('is %p: %s', (late, _, value) => {
    expect(lateResult(value)).toBe(late);
  });

  it('is sent after the call by Nest, but for a Promise, which Nest waits for', () => {
    expect([new PassThrough(), piped(), response()].map(isSentLater)).toEqual([true, true, true]);
    expect([Promise.resolve(), 5, null, {}].map(isSentLater)).toEqual([false, false, false, false]);
  });

  it('knows what await waits for', () => {
    expect([null, undefined, 5, 'then', {}, { then: 1 }].map(isThenable)).toEqual(Array(6).fill(false));
    expect(isThenable({ then: () => undefined })).toBe(true);
  });

  it('is settled when the work of a Promise is over, whatever comes of it', async () => {
    let over = false;
    await settled(
      setImmediate().then(() => {
        over = true;
        throw new Error('failed');
      }),
    );
    expect(over).toBe(true);
    // It begins its work only when it is asked, which would be without the lock.
    const query = { then: () => (over = false) };
    await settled(query);
    expect(over).toBe(true);
  });
});

describe('a response', () => {
  it('is unfinished until its answer has begun, and while a stream answers', () => {
    const answer = response();
    expect([isUnfinished(answer), isPipedInto(answer)]).toEqual([true, false]);
    answer.writeHead(200);
    expect(isUnfinished(answer)).toBe(false);
    new PassThrough().pipe(answer);
    expect([isUnfinished(answer), isPipedInto(answer)]).toEqual([true, true]);
    answer.end();
    expect([isUnfinished(answer), isPipedInto(answer)]).toEqual([false, false]);
    const cut = response();
    cut.destroy();
    expect(isUnfinished(cut)).toBe(false);
  });

  it.each([null, undefined, 'text', {}, { writableEnded: false }, { setHeader: 1, writableEnded: true }])(
    'is not %p',
    (value) => {
      expect([isUnfinished(value), isPipedInto(value)]).toEqual([false, false]);
    },
  );

  it('of a test library need not be an emitter', () => {
    const answer = { setHeader: () => undefined, writableEnded: false, headersSent: false };
    expect([isUnfinished(answer), isPipedInto(answer)]).toEqual([true, false]);
  });

  it('that is left unfinished is refused, and cut off', () => {
    const answer = response();
    expect(() => {
      assertFinished(answer, 'Rows.give');
    }).toThrow('Rows.give: has left its response unfinished');
    expect(answer.destroyed).toBe(true);
    expect(() => {
      assertFinished(undefined, 'Rows.give');
    }).not.toThrow();
  });
});

describe('a refused result', () => {
  const refuse = (value: unknown) => () => {
    assertNotLate(value, 'Rows.give', 'The cure');
  };

  it('is ended: a stream, a file, a Response, an iterator', async () => {
    const stream = new Readable({ read: () => undefined });
    expect(refuse(stream)).toThrow('Rows.give: has given a stream, which is read when');
    const inFile = new Readable({ read: () => undefined });
    expect(refuse(new StreamableFile(inFile))).toThrow('has given a StreamableFile, which');
    expect([stream.destroyed, inFile.destroyed]).toEqual([true, true]);
    const ends: string[] = [];
    const body = new ReadableStream({ cancel: () => void ends.push('body') });
    expect(refuse(new Response(body))).toThrow('The cure');
    const rows = { [Symbol.asyncIterator]: () => rows, return: () => ends.push('rows') };
    expect(refuse(rows)).toThrow('has given an async iterator');
    await setImmediate();
    expect(ends).toEqual(['body', 'rows']);
  });

  it('that cannot be ended, or fails as it is ended, disturbs nothing', async () => {
    expect(refuse({ [Symbol.asyncIterator]: () => undefined })).toThrow('has given an async iterator');
    const failing = {
      [Symbol.asyncIterator]: () => undefined,
      return: () => {
        throw new Error('not open');
      },
    };
    expect(refuse(failing)).toThrow('has given an async iterator');
    const stream = new Readable({
      read: () => undefined,
      destroy: (_, callback) => {
        callback(new Error('cannot be closed'));
      },
    });
    expect(refuse(stream)).toThrow('has given a stream');
    await setImmediate();
    expect(stream.destroyed).toBe(true);
  });

  it('has the cure of its kind', () => {
    expect(refuse(Promise.resolve())).toThrow('Use mergeMap or concatMap');
    expect(refuse(piped())).toThrow('has left its response unfinished');
    expect(refuse([1, 2])).not.toThrow();
  });

  it('that is a Promise is refused only once, although it fails later', async () => {
    const unheard: unknown[] = [];
    const listener = (reason: unknown) => unheard.push(reason);
    process.on('unhandledRejection', listener);
    try {
      expect(refuse(setImmediate().then(() => Promise.reject(new Error('failed'))))).toThrow('a Promise');
      await sleep(20);
      expect(unheard).toEqual([]);
    } finally {
      process.off('unhandledRejection', listener);
    }
  });

  it('of a callback may be an Observable, to which nothing subscribes', async () => {
    const refusal = (value: unknown) => refusalOfHandedOut(value, 'using');
    await expect(refusal(of(1))).rejects.toThrow(
      'using: has given an Observable, which runs when the call has ended',
    );
    await expect(refusal([1].values())).rejects.toThrow('using: has given an iterator');
    for (const value of [null, undefined, 5, {}, { subscribe: () => undefined }, [of(1)]])
      expect(refusal(value)).toBeUndefined();
  });
});
