import { expect, it } from '@jest/globals';
import { Tombstones } from '../../lib/client/waiting/tombstones.js';

it('remembers the owners that have left last, and not all that ever have', () => {
  const tombstones = new Tombstones();
  const departed = Array.from({ length: 20_000 }, (_, n) => ({ name: 'a', owner: `me:${String(n)}` }));
  for (const request of departed) tombstones.add(request);
  expect(tombstones.of('me:0')).toBeUndefined();
  expect(tombstones.of('me:19000')).toBe(departed[19_000]);
  expect(tombstones.of('me:19999')).toBe(departed[19_999]);
});
