import {
  type Measure,
  SERVER_MEASURES,
  type ServerFigures,
  SHOP_MEASURES,
  type ShopFigures,
} from './measures.js';

/** What one look has found. */
export interface Sample {
  /** s since the begin. */
  readonly at: number;
  /** How many locks were taken until then. */
  readonly locks: number;
  readonly shops: readonly ShopFigures[];
  readonly server: ServerFigures;
}

/** A measure of one process, early and late in the run. */
export interface Verdict {
  readonly measure: string;
  readonly title: string;
  readonly unit: string;
  /** `shop 1`, or `Redis`. */
  readonly of: string;
  readonly early: number;
  readonly late: number;
  readonly allowed: number;
  readonly flat: boolean;
}

/** This part of a run is its warm-up: code is compiled, pools and caches are filled. */
const WARM_UP = 1 / 4;

/** A slow machine needs longer for that, and as much work. */
const WARM_UP_LOCKS = 4_000;

/** Fewer say nothing. */
const LEAST = 12;

/**
 * The median of the last third of the samples against that of the first third, without those of the warm-up. A median,
 * because a look may fall into an outage.
 */
export function judge(samples: readonly Sample[]): Verdict[] {
  const shops = samples[0]?.shops ?? [];
  return [
    ...shops.flatMap((_, shop) =>
      SHOP_MEASURES.map((measure) =>
        verdict(measure, `shop ${String(shop + 1)}`, samples, ({ shops }) => shops[shop]![measure.name]),
      ),
    ),
    ...SERVER_MEASURES.map((measure) =>
      verdict(measure, 'Redis', samples, ({ server }) => server[measure.name]),
    ),
  ];
}

function verdict(
  { name, title, unit, allowance }: Measure,
  of: string,
  samples: readonly Sample[],
  figureOf: (sample: Sample) => number,
): Verdict {
  const end = samples.at(-1)?.at ?? 0;
  const judged = samples
    .filter(({ at, locks }) => at >= end * WARM_UP && locks >= WARM_UP_LOCKS)
    .map(figureOf);
  if (judged.length < LEAST)
    throw new Error(`${String(judged.length)} samples after the warm-up say nothing`);
  const third = Math.floor(judged.length / 3);
  const early = median(judged.slice(0, third));
  const late = median(judged.slice(-third));
  const allowed = allowance.by + allowance.part * early;
  return { measure: name, title, unit, of, early, late, allowed, flat: late - early <= allowed };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}
