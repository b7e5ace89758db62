/** A figure that has to stay flat. */
export interface Measure {
  readonly name: string;
  readonly title: string;
  readonly unit: '' | 'MB';
  /** By how much it may have grown: so much, and such a part of what it was. */
  readonly allowance: { readonly by: number; readonly part: number };
}

/** What a shop's process has, at a moment without a buyer. */
export interface ShopFigures {
  /** MB, after a collection of garbage. */
  readonly heap: number;
  /** MB */
  readonly rss: number;
  readonly sockets: number;
  readonly timers: number;
  /** All that keeps Node's event loop alive. */
  readonly resources: number;
  readonly listeners: number;
}

/** What the server has at that moment. */
export interface ServerFigures {
  readonly keys: number;
  readonly clients: number;
  readonly channels: number;
  /** MB */
  readonly memory: number;
}

const count = { by: 1, part: 0 };

/** What a lost answer leaves is taken back or ends with its lease, so a restart is seen in it for half a minute. */
const passing = { by: 3, part: 0 };

export const SHOP_MEASURES: readonly (Measure & { name: keyof ShopFigures })[] = [
  { name: 'heap', title: 'Heap', unit: 'MB', allowance: { by: 1, part: 0.05 } },
  { name: 'rss', title: 'Resident memory', unit: 'MB', allowance: { by: 8, part: 0.1 } },
  { name: 'sockets', title: 'Sockets', unit: '', allowance: count },
  { name: 'timers', title: 'Timers', unit: '', allowance: passing },
  { name: 'resources', title: 'Active resources', unit: '', allowance: passing },
  { name: 'listeners', title: 'Listeners', unit: '', allowance: count },
];

export const SERVER_MEASURES: readonly (Measure & { name: keyof ServerFigures })[] = [
  { name: 'keys', title: 'Keys in Redis', unit: '', allowance: passing },
  { name: 'clients', title: 'Connections of Redis', unit: '', allowance: count },
  { name: 'channels', title: 'Channels of Redis', unit: '', allowance: count },
  { name: 'memory', title: 'Memory of Redis', unit: 'MB', allowance: { by: 1, part: 0.05 } },
];
