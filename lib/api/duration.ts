import { LockConfigError } from './errors.js';

/**
 * A time: whole milliseconds, or a text with a unit, such as `'500ms'`, `'30s'`, `'1.5m'`, `'2h'` or `'1d'`, with three
 * decimals at most. A text that is not a whole number of milliseconds is LockConfigError, and so is a time of more than one
 * year (`'365d'`).
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/**
 * The longest time of a lock, ms: one year. No sum of times and moments comes near the greatest safe integer, also not in a
 * ticket, which another process reads.
 */
export const LONGEST = 31_536_000_000;

const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const TEXT = /^(\d+(?:\.\d{1,3})?)(ms|s|m|h|d)$/;

/** The milliseconds of a text with a unit. Any other value is returned as it is. */
function millisecondsOf(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const [, number, unit] = TEXT.exec(value) ?? [];
  if (number === undefined) return value;
  // Exact to a thousandth: 1.1 * 60_000 is 66_000.00000000001.
  return Math.round(Number(number) * MILLISECONDS[unit as keyof typeof MILLISECONDS] * 1_000) / 1_000;
}

/** Whether a value is a time of a lock in ms, not less than `least`. */
export const isTime = (value: unknown, least = 0): value is number =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= LONGEST;

/**
 * A time in ms, from `least` to one year. Infinity only if `unbounded` says so.
 * @throws LockConfigError
 */
export function timeOf(
  option: string,
  value: unknown,
  { least = 0, unbounded = false }: { least?: number; unbounded?: boolean } = {},
): number {
  const time = millisecondsOf(value);
  if (unbounded && time === Infinity) return Infinity;
  if (isTime(time, least)) return time;
  const rule =
    `must be a whole number of milliseconds from ${String(least)} to ${String(LONGEST)} (one year), ` +
    "or a text such as '30s' or '5m'";
  throw new LockConfigError(option, `${rule}${unbounded ? ', or Infinity' : ''}${cureOf(value)}`, { value });
}

/** The end of a rule for numbers, if the value is a number as the environment gives it. */
export const cureOf = (value: unknown): string =>
  typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value))
    ? '; a value from the environment needs Number(…) around it'
    : '';
