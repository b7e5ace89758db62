import type { Random } from '../../../../chaos/random.js';

/** A command over one of the connections. */
export interface Step {
  readonly connection: number;
  /** Where the server's clock stands, microseconds. */
  readonly at: number;
  readonly command: readonly string[];
}

export interface Maker {
  readonly random: Random;
  readonly at: number;
}

export const BEGIN = 1_700_000_000_000_000;

export const OWNERS = ['one', 'two', 'three'].flatMap((client) =>
  [1, 2].map((hold) => `${client}:${String(hold)}`),
);
export const CHANNELS = [
  'release',
  ...['one', 'two', 'three'].map((client) => `lock_queue__channel:${client}`),
];

/** For messages: what the others publish. The last one speaks RESP2. */
export const LISTENERS = [1, 2];

export function listening({ random, at }: Maker): Step {
  const connection = random.pick(LISTENERS);
  const word = random.pick([
    'SUBSCRIBE',
    'SUBSCRIBE',
    'SUBSCRIBE',
    'UNSUBSCRIBE',
    'SSUBSCRIBE',
    'SUNSUBSCRIBE',
  ]);
  const channels = random.some(CHANNELS);
  const none = channels.length === 0 && word.includes('UNSUB') ? [] : ['release'];
  return { connection, at, command: [word, ...(channels.length > 0 ? channels : none)] };
}

export const word =
  (...words: readonly string[]) =>
  ({ random }: Maker): string =>
    random.pick(words);
