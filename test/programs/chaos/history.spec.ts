import { expect, it } from '@jest/globals';
import { endOf, readJournal } from './history.js';

const lines = (...entries: object[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');

it('puts the lines of a journal together, without one that a kill has cut off', () => {
  const text = lines(
    { at: 1, type: 'invoke', op: 7, lock: 'a', kind: 'lock', mode: 'exclusive', leaseTime: 100 },
    { at: 2, type: 'grant', op: 7, owner: 'me:1', token: 5, deadline: 98 },
    { at: 40, type: 'lag', from: 10 },
    { at: 50, type: 'deadline', op: 7, deadline: 130 },
    { at: 60, type: 'release', op: 7 },
  );
  const { process, attempts } = readJournal('A', `${text}{"at":61,"type":"rel`);
  expect(process).toMatchObject({ lags: [{ from: 10, to: 40 }], lastSeen: 60, ended: false });
  expect(attempts).toHaveLength(1);
  expect(attempts[0]).toMatchObject({
    process: 'A',
    op: 7,
    invoked: 1,
    granted: 2,
    token: 5,
    releaseFrom: 60,
  });
  expect(attempts[0]?.releaseTo).toBeUndefined();
  expect(endOf(attempts[0]!)).toBe(60);
});
