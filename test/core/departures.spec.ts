import { expect, it } from '@jest/globals';
import { Departures } from '../../lib/core/departures.js';

it('knows those who have left last, and not all who ever have', () => {
  const departures = new Departures();
  const departed = Array.from({ length: 20_000 }, (_, n) => ({ name: 'a', owner: `me:${String(n)}` }));
  for (const request of departed) departures.add(request);
  expect(departures.of('me:0')).toBeUndefined();
  expect(departures.of('me:19000')).toBe(departed[19_000]);
  expect(departures.of('me:19999')).toBe(departed[19_999]);
});
