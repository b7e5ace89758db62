import { describe, expect, it } from '@jest/globals';
import { keyInSlot, slotOf } from '../../../lib/stores/redis/connection/slots.js';

describe('A key in a given slot', () => {
  const SLOTS = [0, 1, 7, 8_191, 12_182, 16_383];

  it.each([
    ['lock:a', /^lock:a\{[0-7]{6}\}$/],
    ['a}b', /^a\}b\{[0-7]{6}\}$/],
    ['a{b', /^a\{b[0-7]{6}\}$/],
    ['{', /^\{[0-7]{6}\}$/],
    ['{é', /^\{é[0-7]{6}\}$/],
    ['a{', /^a\{[0-7]{6}\}$/],
    ['a{}b', /^a\{\}b[0-7]{6}$/],
    ['é{é', /^é\{é[0-7]{6}\}$/],
  ])('that begins with %j has a few digits more', (text, pattern) => {
    for (const slot of SLOTS) {
      const key = keyInSlot(text, slot);
      expect(key).toMatch(pattern);
      expect(slotOf(key)).toBe(slot);
    }
  });

  it('is the text itself where its tag has decided', () => {
    expect(keyInSlot('a{b}c', 7)).toBe('a{b}c');
    expect(keyInSlot('a{{}c', 7)).toBe('a{{}c');
  });

  it('can be made for every slot', () => {
    const keys = Array.from({ length: 16_384 }, (_, slot) => keyInSlot('a', slot));
    expect(keys.findIndex((key, slot) => slotOf(key) !== slot)).toBe(-1);
    // Processes of several versions share keys.
    expect([keys[0], keys[16_383]]).toEqual(['a{556534}', 'a{575207}']);
  });
});
