import { expect, it, jest } from '@jest/globals';
import { setImmediate } from 'node:timers/promises';
import { Labels } from '../../lib/client/scope/labels.js';

it('A store whose labels throw at once disturbs neither a timer, nor a release, nor an answer', async () => {
  const refuse = (): never => {
    throw new Error('broken');
  };
  const labels = new Labels({ labels: { keep: refuse, find: refuse } }, 'client', 'here');
  expect(() => {
    labels.keep();
  }).not.toThrow();
  expect(await labels.find('other:1')).toBeUndefined();
  labels.close();
});

it('A label that is refused is not sent again with each release, however long the lock is kept', async () => {
  let sent = 0;
  const keep = () => {
    sent++;
    return Promise.reject(new Error('NOPERM'));
  };
  const labels = new Labels({ labels: { keep, find: () => Promise.resolve(undefined) } }, 'client', 'here');
  for (const time of [3_600_000, 3_600_000, 0]) {
    labels.keep(time);
    await setImmediate();
  }
  expect(sent).toBe(1);
  labels.close();
});

it('Many that want to know one holder at the same time ask the store once', async () => {
  let asked = 0;
  const find = async () => {
    asked++;
    await setImmediate();
    return undefined;
  };
  const labels = new Labels({ labels: { keep: () => Promise.resolve(), find } }, 'client', 'here');
  const answers = await Promise.all(
    ['other:1', 'other:2', 'kept:other:3'].map((owner) => labels.find(owner)),
  );
  expect(answers).toEqual([undefined, undefined, undefined]);
  expect(asked).toBe(1);
  // A label that was not known may be known by now.
  await labels.find('other:1');
  expect(asked).toBe(2);
  labels.close();
});

/** A client that notes what it sends, with the labels that the store knows. */
function client(id: string, known: Readonly<Record<string, string>> = {}) {
  const calls = { kept: [] as [string, string, number][], found: [] as string[] };
  const store = {
    labels: {
      keep: (...call: [string, string, number]) => {
        calls.kept.push(call);
        return Promise.resolve();
      },
      find: (asked: string) => {
        calls.found.push(asked);
        return Promise.resolve(known[asked]);
      },
    },
  };
  return { calls, labels: new Labels(store, id, `label of ${id}`) };
}

it('A label is kept for a minute after the time that is asked for, and not sent again while that lasts', () => {
  const { calls, labels } = client('own');
  labels.keep();
  labels.keep();
  expect(calls.kept).toEqual([['own', 'label of own', 60_000]]);
  // A lock that is kept for longer than that.
  labels.keep(600_000);
  labels.keep(600_000);
  labels.keep();
  expect(calls.kept.slice(1)).toEqual([['own', 'label of own', 660_000]]);
  labels.close();
});

it('A label is kept again when half of its minute is over', () => {
  jest.useFakeTimers();
  const { calls, labels } = client('own');
  labels.keep();
  jest.advanceTimersByTime(29_000);
  labels.keep();
  expect(calls.kept).toHaveLength(1);
  jest.advanceTimersByTime(1_001);
  labels.keep();
  expect(calls.kept).toHaveLength(2);
  labels.close();
  jest.useRealTimers();
});

it('A label that was refused is tried again after ten seconds', async () => {
  jest.useFakeTimers();
  let sent = 0;
  const keep = () => (sent++ === 0 ? Promise.reject(new Error('NOPERM')) : Promise.resolve());
  const labels = new Labels({ labels: { keep, find: () => Promise.resolve(undefined) } }, 'client', 'here');
  labels.keep();
  await jest.advanceTimersByTimeAsync(9_999);
  labels.keep();
  expect(sent).toBe(1);
  await jest.advanceTimersByTimeAsync(2);
  labels.keep();
  expect(sent).toBe(2);
  labels.close();
  jest.useRealTimers();
});

it('The clients of one process know each other without a question, as long as they are open', async () => {
  const [{ calls, labels }, { labels: sibling }] = [
    client('own', { sibling: 'as the store says' }),
    client('sibling'),
  ];
  expect(labels.isOwn('own:7')).toBe(true);
  expect(labels.isOwn('kept:own:7')).toBe(true);
  expect(labels.isOwn('owner:7')).toBe(false);
  expect([labels.isSibling('sibling:7'), labels.isSibling('own:7'), labels.isSibling('other:7')]).toEqual([
    true,
    false,
    false,
  ]);
  expect([labels.knownOf('own:1'), labels.knownOf('sibling:1'), labels.knownOf('other:1')]).toEqual([
    'label of own',
    'label of sibling',
    undefined,
  ]);
  expect(await labels.find('sibling:1')).toBe('label of sibling');
  expect(calls.found).toEqual([]);
  sibling.close();
  expect(labels.isSibling('sibling:7')).toBe(false);
  expect(await labels.find('sibling:1')).toBe('as the store says');
  labels.close();
});

it('A label that the store has told is remembered, of the last thousand clients', async () => {
  const known = Object.fromEntries(
    Array.from({ length: 1_001 }, (_, n) => [`other${String(n)}`, `label ${String(n)}`]),
  );
  const { calls, labels } = client('own', known);
  for (let n = 0; n < 1_000; n++) await labels.find(`other${String(n)}:1`);
  expect(await labels.find('other0:2')).toBe('label 0');
  expect([labels.knownOf('other0:3'), calls.found.length]).toEqual(['label 0', 1_000]);
  expect(await labels.find('other1000:1')).toBe('label 1000');
  expect([labels.knownOf('other0:3'), labels.knownOf('other1:3')]).toEqual([undefined, 'label 1']);
  labels.close();
});

it('A store that does not say what a holder is called keeps no answer waiting', async () => {
  jest.useFakeTimers();
  const never = new Promise<undefined>(() => undefined);
  const labels = new Labels(
    { labels: { keep: () => Promise.resolve(), find: () => never } },
    'client',
    'here',
  );
  let found: string | undefined = 'waiting';
  void labels.find('other:1').then((label) => (found = label));
  await jest.advanceTimersByTimeAsync(249);
  expect(found).toBe('waiting');
  // An answer that has arrived by then is read first.
  await jest.advanceTimersByTimeAsync(2);
  expect(found).toBeUndefined();
  labels.close();
  jest.useRealTimers();
  const without = new Labels({}, 'client', 'here');
  without.keep();
  expect(await without.find('other:1')).toBeUndefined();
  without.close();
});
