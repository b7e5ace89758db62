/** One picture or several that are joined, each with a style or a colour of skin, or the picture of a key. */
const PICTURE = String.raw`\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?`;
const EMOJI = String.raw`${PICTURE}(?:\u200d${PICTURE})*|[\d#*]\ufe0f\u20e3`;

/**
 * Characters that a terminal or a log does not take as plain text (line ends, escape sequences, marks that turn the direction), and
 * those of which nothing is seen, such as a space of no width: two names that differ by one look the same. An emoji of several
 * characters stays whole.
 */
const HIDDEN = new RegExp(
  `(${EMOJI})|[\\p{Cc}\\p{Bidi_Control}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029]`,
  'gu',
);

/** Text from outside as a part of one log line: it can neither begin another line nor move the cursor, nor hide a character. */
export const onOneLine = (text: string): string =>
  text.replace(HIDDEN, (hidden, emoji: string | undefined) => emoji ?? escaped(hidden));

/** As JSON writes it: one of more than 16 bits has two parts. */
const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');

/** A name from outside between double quotes, as JSON writes it: it cannot end the quotation either. */
export const inQuotes = (text: string): string => onOneLine(JSON.stringify(text).slice(1, -1));
