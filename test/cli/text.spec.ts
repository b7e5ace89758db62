import { describe, expect, it } from '@jest/globals';
import { fit, widthOf } from '../../lib/cli/output/text.js';

describe('The width of a text', () => {
  it.each([
    ['order:7', 7],
    ['注文', 4],
    ['𠮷野', 4],
    ['\u{30edd}', 2],
    ['\u{17000}\u{1b001}', 4],
    ['한', 2],
    ['한'.normalize('NFD'), 2],
    ['e\u0301', 1],
    ['\ufeffa\u2060b', 2],
    ['🔒', 2],
  ])('of %j is %i columns', (text, columns) => {
    expect(widthOf(text)).toBe(columns);
  });

  it('that is cut leaves no half of a character', () => {
    expect(fit('𠮷𠮷𠮷', 5)).toBe('𠮷𠮷…');
    expect(fit('𠮷𠮷𠮷', 4)).toBe('𠮷…');
  });
});
