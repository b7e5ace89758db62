import { describe, expect, it } from '@jest/globals';
import { staying } from '../../lib/board/browser/staying.js';

describe('What stays in its place', () => {
  it.each<[what: string, positions: (number | undefined)[], stays: number[]]>([
    ['nothing where there is nothing', [], []],
    ['nothing that is new', [undefined, undefined], []],
    ['all that come in the same order', [0, 1, 2], [0, 1, 2]],
    ['all but the first one that goes to the end', [1, 2, 3, 0], [0, 1, 2]],
    ['all but the last one that goes to the front', [3, 0, 1, 2], [1, 2, 3]],
    ['all around those that have gone', [2, 5, 9], [0, 1, 2]],
    ['all around those that are new', [undefined, 0, undefined, 1], [1, 3]],
    ['one of those that are turned round', [2, 1, 0], [2]],
  ])('is %s', (_, positions, stays) => {
    expect([...staying(positions)].sort((a, b) => a - b)).toEqual(stays);
  });
});
