import { setTimeout } from 'node:timers/promises';
import type { Answer, Shop } from './shop.js';

/** How often the buyers of a tick come, ms. */
const TICK = 10;

/** The page asks so often for the state, ms. */
const LOOK = 500;

/** Bought, sold out, the lock stayed busy, Redis was away. */
const EXPECTED: readonly (number | string)[] = [201, 410, 409, 503];

/** What became of the buyers of one evening. */
export interface Evening {
  /** How many took the lock: those that bought, and those that found all seats sold. */
  readonly locks: number;
  readonly bought: number;
  /** Answers by their status. */
  readonly answers: Readonly<Record<string, number>>;
  /** Seats with two buyers. */
  readonly soldTwice: readonly number[];
  /** Answers that no shop should give. */
  readonly odd: readonly string[];
  /** When the lock was taken last and first after a moment, by {@link performance}. */
  readonly taken: readonly number[];
}

/**
 * All seats are free again, then so many buyers come one after another within a time, to all shops in turn. Ends when
 * each of them has an answer, so that no buyer of this evening meets one of the next.
 *
 * @param time ms
 */
export async function evening(shops: readonly Shop[], buyers: number, time: number): Promise<Evening> {
  await clear(shops[0]!);
  const closeBoard = shops[0]!.watch();
  const closed = new AbortController();
  const pages = shops.map((shop) => watchPage(shop, closed.signal));
  const taken: number[] = [];
  const buy = async (shop: Shop) => {
    const answer = await shop.ask('POST', 'buy');
    if (answer.status === 201 || answer.status === 410) taken.push(performance.now());
    return answer;
  };
  const answers: Promise<Answer>[] = [];
  const begun = performance.now();
  while (answers.length < buyers) {
    const due = Math.min(buyers, Math.ceil((buyers * (performance.now() - begun + TICK)) / time));
    while (answers.length < due) answers.push(buy(shops[answers.length % shops.length]!));
    await setTimeout(TICK);
  }
  const all = await Promise.all(answers);
  closed.abort();
  closeBoard();
  return { ...summaryOf(all, (await Promise.all(pages)).flat()), taken };
}

/** While there are no buyers. Redis may be away. */
async function clear(shop: Shop): Promise<void> {
  while (!shop.hasEnded && (await shop.ask('POST', 'reset')).status !== 200) await setTimeout(50);
}

/** What an open page and a load balancer ask for. */
async function watchPage(shop: Shop, signal: AbortSignal): Promise<Answer[]> {
  const answers: Answer[] = [];
  while (!signal.aborted && !shop.hasEnded) {
    answers.push(await shop.ask('GET', 'rush/state'), await shop.ask('GET', 'health'));
    await setTimeout(LOOK, undefined, { signal }).catch(() => undefined);
  }
  return answers.filter(({ status }) => status !== 200);
}

function summaryOf(answers: readonly Answer[], ofPages: readonly Answer[]): Omit<Evening, 'taken'> {
  const counts: Record<string, number> = {};
  const buyersOf = new Map<number, number>();
  for (const { status, body } of answers) {
    counts[status] = (counts[status] ?? 0) + 1;
    if (status !== 201) continue;
    const { seat } = JSON.parse(body) as { seat: number };
    buyersOf.set(seat, (buyersOf.get(seat) ?? 0) + 1);
  }
  const [bought = 0, soldOut = 0] = [counts[201], counts[410]];
  return {
    locks: bought + soldOut,
    bought,
    answers: counts,
    soldTwice: [...buyersOf].filter(([, buyers]) => buyers > 1).map(([seat]) => seat),
    odd: [...answers, ...ofPages]
      .filter(({ status }) => !EXPECTED.includes(status))
      .map(({ status, body }) => `${String(status)} ${body}`),
  };
}
