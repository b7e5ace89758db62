import { expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../../lib/core/deadline.js';
import type { Acquisition } from '../../lib/core/acquisition.js';
import { Acquisitions } from '../../lib/core/acquisitions.js';
import type { Tenure } from '../../lib/core/tenure.js';
import type { ReleaseRequest } from '../../lib/store/index.js';
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

it('a message reaches the acquisition of its owner, and one to all reaches each', () => {
  const acquisitions = new Acquisitions({ release: () => Promise.resolve(undefined) });
  const told: string[] = [];
  const begun = (firstOwner: string) => {
    acquisitions.add({
      firstOwner,
      lookAgain: () => told.push(`${firstOwner} looks`),
      onMessage: ({ type }: { type: string }) => told.push(`${firstOwner} ${type}`),
    } as unknown as Acquisition);
  };
  begun('client:1');
  begun('client:2');
  acquisitions.onMessage({ type: 'missed', owner: 'client:1' });
  acquisitions.onMessage({ type: 'next', owner: 'client:2', within: 5 });
  acquisitions.onMessage({ type: 'missed' });
  acquisitions.onMessage({ type: 'missed', owner: 'client:3' });
  expect(told).toEqual(['client:1 missed', 'client:2 next', 'client:1 looks', 'client:2 looks']);
});

it('an acquisition that leaves is remembered, and one that is granted is not', () => {
  const released: ReleaseRequest[] = [];
  const acquisitions = new Acquisitions({
    release: (request) => {
      released.push(request);
      return Promise.resolve(undefined);
    },
  });
  for (const isGranted of [true, false]) {
    const owner = `client:${String(isGranted)}`;
    const acquisition = { firstOwner: owner, isGranted, releaseRequest: { name: 'a', owner } };
    acquisitions.add(acquisition as unknown as Acquisition);
    acquisitions.remove(acquisition as unknown as Acquisition);
    acquisitions.onMessage({ type: 'next', owner, within: 5 });
  }
  expect(released).toEqual([{ name: 'a', owner: 'client:false' }]);
});

it('a grant with an older token than an exclusive hold is given back, and the store is asked about the hold', () => {
  const released: ReleaseRequest[] = [];
  const looked: Tenure[] = [];
  const losses: string[] = [];
  const acquisitions = new Acquisitions(
    {
      release: (request) => {
        released.push(request);
        return Promise.resolve(undefined);
      },
    },
    undefined,
    (tenure) => looked.push(tenure),
  );
  const hold = (owner: string, fencingToken: number, name = 'a') =>
    ({
      ...{ name, owner, fencingToken, queue: { mode: 'exclusive' }, terms: { leaseTime: 5_000 } },
      lose: (reason: string) => losses.push(`${owner} ${reason}`),
    }) as unknown as Tenure;
  const former = hold('former', 7);
  acquisitions.begun(former, undefined);
  acquisitions.begun(hold('elsewhere', 1, 'b'), undefined);
  acquisitions.begun(hold('older', 6), undefined);
  expect(losses).toEqual(['older taken']);
  expect(released).toMatchObject([{ name: 'a', owner: 'older', leaseTime: 5_000, fencingToken: 6 }]);
  expect(looked).toEqual([former]);
  acquisitions.begun(hold('same', 7), undefined);
  expect(losses.slice(1)).toEqual(['former taken']);
});
