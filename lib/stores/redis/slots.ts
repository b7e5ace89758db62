/** How many parts a Redis Cluster divides all keys into; each master has some of them. */
const SLOTS = 16_384;

/** CRC-16/XMODEM of each byte, as the cluster specification has it. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});

/** What Redis hashes of a key: the text between its first brace and the next closing one, unless that is nothing. */
export function hashTag(key: string): string | undefined {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

/** The slot of a key: what CLUSTER KEYSLOT answers. */
export const slotOf = (key: string): number => slotOfTag(hashTag(key) ?? key);

/** The slot of all keys with that tag. */
export function slotOfTag(tag: string): number {
  let crc = 0;
  for (let n = 0; n < tag.length; n++) {
    const code = tag.charCodeAt(n);
    if (code > 127) return slotOfBytes(Buffer.from(tag));
    crc = step(crc, code);
  }
  return crc % SLOTS;
}

const slotOfBytes = (bytes: Uint8Array): number => bytes.reduce(step, 0) % SLOTS;

function step(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] ?? 0);
}
