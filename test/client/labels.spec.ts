import { expect, it, jest } from '@jest/globals';
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
