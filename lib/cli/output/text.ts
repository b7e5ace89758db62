import { onOneLine } from '../../runtime/text.js';

/** Takes two columns of a terminal: East Asian scripts and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18d7f}\u{1aff0}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Takes none: it goes onto the character before it, as the second and third part of a syllable of Hangul do. */
const NARROW = /[\p{Mn}\p{Me}\u1160-\u11ff\u200b-\u200d\u2060-\u2064\ufe0f\ufeff]/u;

const widthOfOne = (character: string): number => (NARROW.test(character) ? 0 : WIDE.test(character) ? 2 : 1);

/** How many columns of a terminal a text takes. */
export const widthOf = (text: string): number => {
  // Most texts, in a fraction of the time.
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += widthOfOne(character);
  return width;
};

/** The beginning of a text that fits, with an ellipsis if something is cut off. */
export function fit(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const character of text) {
    left -= widthOfOne(character);
    if (left < 0) break;
    kept += character;
  }
  return width < 1 ? '' : `${kept}…`;
}

export const pad = (text: string, width: number, right: boolean): string => {
  const spaces = ' '.repeat(Math.max(0, width - widthOf(text)));
  return right ? spaces + text : text + spaces;
};

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
] as const;

/** `350ms`, `4.2s`, `3m 20s`, `2h 5m`, `4d 1h`; nothing for a time that is not known. */
export function duration(time: number | null | undefined): string {
  if (time === null || time === undefined || Number.isNaN(time)) return '–';
  if (time === Infinity) return 'no end';
  if (time < 1_000) return `${String(Math.round(time))}ms`;
  if (time < 60_000) return `${(Math.floor(time / 100) / 10).toFixed(1)}s`;
  const at = UNITS.findIndex(([, size]) => time >= size);
  const [unit, size] = UNITS[at] ?? UNITS[2];
  const [next, nextSize] = UNITS[at + 1] ?? (['s', 1_000] as const);
  const rest = Math.floor((time % size) / nextSize);
  const whole = `${String(Math.floor(time / size))}${unit}`;
  return rest === 0 ? whole : `${whole} ${String(rest)}${next}`;
}

/**
 * One line of JSON. Infinity and NaN are null. Marks that JSON leaves as they are, and a terminal does not, are escaped, which
 * JSON allows within texts.
 */
export const json = (value: unknown): string => onOneLine(JSON.stringify(value));
