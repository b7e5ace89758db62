import { describe, expect, it } from '@jest/globals';
import { judge, type Sample } from './judge.js';
import type { ServerFigures, ShopFigures } from './measures.js';

const shop = { heap: 30, rss: 120, sockets: 5, timers: 4, resources: 12, listeners: 60 };
const server = { keys: 3, clients: 10, channels: 4, memory: 2 };

/** An hour with a look every minute. */
function run(
  change: (minute: number) => { shop?: Partial<ShopFigures>; server?: Partial<ServerFigures> },
  rate = 30_000,
) {
  return Array.from({ length: 60 }, (_, minute): Sample => {
    const own = change(minute);
    return {
      at: minute * 60,
      locks: minute * rate,
      shops: [shop, { ...shop, ...own.shop }],
      server: { ...server, ...own.server },
    };
  });
}

const grown = (samples: readonly Sample[]) =>
  judge(samples)
    .filter(({ flat }) => !flat)
    .map(({ measure, of }) => `${measure} of ${of}`);

describe('The judge of a soak', () => {
  it('finds an even run flat', () => {
    expect(grown(run(() => ({})))).toEqual([]);
  });

  it.each(Object.keys(shop) as (keyof ShopFigures)[])('finds that %s of one process grows', (name) => {
    const leak = name === 'rss' || name === 'heap' ? 1 : 0.2;
    expect(grown(run((minute) => ({ shop: { [name]: shop[name] + Math.floor(minute * leak) } })))).toEqual([
      `${name} of shop 2`,
    ]);
  });

  it.each(Object.keys(server) as (keyof ServerFigures)[])('finds that %s of the server grows', (name) => {
    expect(grown(run((minute) => ({ server: { [name]: server[name] + Math.floor(minute / 5) } })))).toEqual([
      `${name} of Redis`,
    ]);
  });

  it('takes what grows at the begin only for the warm-up', () => {
    expect(grown(run((minute) => ({ shop: { heap: 20 + Math.min(minute, 15) } })))).toEqual([]);
  });

  it('waits for so many locks where they come slowly', () => {
    const growing = (minute: number) => ({ shop: { heap: 20 + Math.min(minute, 40) } });
    expect(grown(run(growing, 100))).toEqual([]);
    expect(grown(run(growing))).toEqual(['heap of shop 2']);
  });

  it('passes over looks that fall into an outage', () => {
    expect(
      grown(run((minute) => (minute % 5 === 4 ? { shop: { timers: 500 }, server: { clients: 1 } } : {}))),
    ).toEqual([]);
  });

  it('refuses to judge a run with too few looks', () => {
    expect(() => judge(run(() => ({})).slice(0, 10))).toThrow('say nothing');
  });
});
