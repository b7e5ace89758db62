/** The number of parts into which a Redis Cluster divides all keys; each master has some of them. */
const SLOTS = 16_384;

/** CRC-16/XMODEM of each byte, as in the cluster specification. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});

/** What Redis hashes of a key: the text between its first brace and the next closing one, unless that text is empty. */
export function hashTag(key: string): string | undefined {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

/** The slot of a key: what CLUSTER KEYSLOT answers. */
export const slotOf = (key: string): number => slotOfTag(hashTag(key) ?? key);

/** The slot of all keys with that tag. */
export const slotOfTag = (tag: string): number => crcOf(tag) % SLOTS;

/**
 * A key that begins with `text` and lies in `slot`. A text with a hash tag is that key already, because the tag has decided.
 * Otherwise digits that lead to the slot are appended: as a tag, as the end of the tag that an open brace has begun, or,
 * after an empty tag, as the end of a key that is hashed as a whole.
 */
export function keyInSlot(text: string, slot: number): string {
  const open = text.indexOf('{');
  if (open < 0) return `${text}{${digitsTo(slot, 0)}}`;
  const close = text.indexOf('}', open);
  if (close < 0) return `${text}${digitsTo(slot, crcOf(text.slice(open + 1)))}}`;
  return close > open + 1 ? text : text + digitsTo(slot, crcOf(text));
}

/** Six octal digits are the fewest that lead to every slot. */
const DIGITS = 6;
/** All groups of three digits, which are quicker to look up than to write. */
const THREE = Array.from({ length: 512 }, (_, number) => number.toString(8).padStart(3, '0'));
/** By slot: the digits that lead there from the start. Computed once, when the first lock needs them. */
let numbers: Uint32Array | undefined;

/** Digits that lead to the slot after a text with that CRC. */
function digitsTo(slot: number, crc: number): string {
  numbers ??= countOut();
  // A CRC is linear: the CRC of the whole is the sum of the CRCs of its parts, each beside zeros.
  let before = crc;
  if (crc !== 0) for (let n = 0; n < DIGITS; n++) before = step(before, 0);
  const number = numbers[(slot ^ before) % SLOTS] ?? 0;
  return `${THREE[number >> 9] ?? ''}${THREE[number & 511] ?? ''}`;
}

function countOut(): Uint32Array {
  const bySlot = new Uint32Array(SLOTS);
  const count = (crc: number, number: number, digits: number): void => {
    for (let digit = 0; digit < 8; digit++) {
      const [next, extended] = [step(crc, 0x30 + digit), number * 8 + digit];
      if (digits > 1) count(next, extended, digits - 1);
      else bySlot[next % SLOTS] = extended;
    }
  };
  count(0, 0, DIGITS);
  return bySlot;
}

/** The CRC of the text's bytes in UTF-8. */
function crcOf(text: string): number {
  let crc = 0;
  for (let n = 0; n < text.length; n++) {
    const code = text.charCodeAt(n);
    if (code > 127) return Buffer.from(text).reduce(step, 0);
    crc = step(crc, code);
  }
  return crc;
}

function step(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] ?? 0);
}
