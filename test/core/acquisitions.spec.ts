import { expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../../lib/core/deadline.js';
import type { Acquisition } from '../../lib/core/acquisition.js';
import { Acquisitions } from '../../lib/core/acquisitions.js';
import type { Tenure } from '../../lib/core/tenure.js';
import { CLAIM } from '../../lib/port/queue-messages.js';
import { until } from '../scenarios/until.js';

it.each([
  [30_000, 30_000],
  [100, CLAIM],
])(
  'a grant to an owner that has left is given back for as long as it may last: %d ms',
  (leaseTime, least) => {
    const untils: number[] = [];
    const places = new Acquisitions({
      release: (_, until) => {
        untils.push(until);
        return Promise.resolve(undefined);
      },
    });
    places.departed({ name: 'a', owner: 'client:1', leaseTime });
    const granted = {
      type: 'granted',
      fencingToken: 1,
      grantedAt: now(),
      leaseTime,
      rivals: 'none',
    } as const;
    places.onMessage({ ...granted, owner: 'client:2' });
    expect(untils).toEqual([]);
    places.onMessage({ ...granted, owner: 'client:1' });
    expect(untils).toEqual([expect.closeTo(now() + least, -2)]);
  },
);

it('an owner that has changed meanwhile leaves nothing behind', () => {
  const places = new Acquisitions({ release: () => Promise.resolve(undefined) });
  let looks = 0;
  const place = { owner: 'client:1', isGranted: true, lookAgain: () => looks++ };
  places.add(place as unknown as Acquisition);
  place.owner = 'client:2';
  places.onMessage({ type: 'missed' });
  places.remove(place as unknown as Acquisition);
  places.onMessage({ type: 'missed' });
  expect(looks).toBe(1);
});

it('a later grant ends the exclusive hold of this process, and no hold that is over', () => {
  const acquisitions = new Acquisitions({ release: () => Promise.resolve(undefined) });
  const losses: string[] = [];
  const hold = (owner: string, fencingToken: number, mode: 'shared' | 'exclusive') =>
    ({
      name: 'a',
      owner,
      fencingToken,
      queue: { mode },
      lose: () => losses.push(owner),
    }) as unknown as Tenure;
  const [writer, reader] = [hold('writer', 1, 'exclusive'), hold('reader', 2, 'shared')];
  acquisitions.begun(writer, undefined);
  acquisitions.begun(reader, 'writer');
  acquisitions.ended(reader);
  expect(losses).toEqual([]);
  const second = hold('second', 3, 'exclusive');
  acquisitions.begun(second, undefined);
  expect(losses).toEqual(['writer']);
  acquisitions.ended(second);
  acquisitions.begun(hold('third', 4, 'exclusive'), undefined);
  expect(losses).toEqual(['writer']);
});

it('tells of an acquisition that lasts for a second, once a second, and of none that is over by then', async () => {
  const calls: number[] = [];
  const releaser = { release: () => Promise.resolve(undefined) };
  const acquisitions = new Acquisitions(releaser, () => calls.push(now()));
  const begun = (firstOwner: string) => {
    const acquisition = { firstOwner, createdAt: now(), isGranted: true } as unknown as Acquisition;
    acquisitions.add(acquisition);
    acquisitions.waits();
    return acquisition;
  };
  acquisitions.remove(begun('client:1'));
  const long = begun('client:2');
  await until(() => calls.length === 2);
  expect(calls[0]! - long.createdAt).toBeGreaterThan(990);
  expect(calls[1]! - calls[0]!).toBeGreaterThan(990);
  acquisitions.remove(long);
  await sleep(1_200);
  expect(calls).toHaveLength(2);
});
