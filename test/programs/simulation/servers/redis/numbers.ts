import type { Refusal } from './replies.js';
import { notAnInteger } from './replies.js';

/** As C prints a number with %.17g, which is how scores and the numbers of scripts become text. */
export function digitsOf(number: number): string {
  if (Number.isNaN(number)) return 'nan';
  if (!Number.isFinite(number)) return number > 0 ? 'inf' : '-inf';
  if (Number.isSafeInteger(number)) return Object.is(number, -0) ? '-0' : String(number);
  const [mantissa = '', power = ''] = number.toExponential(16).split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 17) return trimmed(number.toPrecision(17));
  return `${trimmed(mantissa)}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

const trimmed = (digits: string): string => (digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits);

/** @throws Refusal */
export function wholeOf(text: string, refusal: () => Refusal = notAnInteger): number {
  // Redis takes 64 bits. Beyond what a number here is exact for, no lock has anything.
  if (!/^(?:0|-?[1-9]\d*)$/.test(text)) throw refusal();
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw refusal();
  return number;
}

const FLOAT = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Undefined where the text is none. */
export function floatOf(text: string): number | undefined {
  if (FLOAT.test(text)) return Number(text);
  const infinite = /^([+-]?)inf(?:inity)?$/i.exec(text);
  return infinite === null ? undefined : infinite[1] === '-' ? -Infinity : Infinity;
}
