/** One picture or several that are joined, each with a style or a colour of skin, the picture of a key, or the flag of a region. */
const PICTURE = String.raw`\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?`;
const EMOJI = String.raw`\u{1f3f4}[\u{e0030}-\u{e007f}]+|${PICTURE}(?:\u200d${PICTURE})*|[\d#*]\ufe0f\u20e3`;

/**
 * Characters that a terminal or a log does not take as plain text (line ends, escape sequences, marks that turn the direction), and
 * characters that are invisible, such as a space of no width: two names that differ by one look the same.
 */
const UNSEEN = String.raw`[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\u2028\u2029]`;
const HIDDEN = new RegExp(`(${EMOJI})|${UNSEEN}`, 'gu');
const HAS_UNSEEN = new RegExp(UNSEEN, 'u');
/** Made when there is such an emoji: it costs 60 ms. */
let wholeOrHidden: RegExp | undefined;

/** Whether a text has a character that is seen, and not only spaces and what takes no place. */
export const isSeen = (text: string): boolean =>
  /[^\s\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);

/** Text from outside as a part of one log line: it can neither begin another line nor move the cursor, nor hide a character. */
export const onOneLine = (text: string): string =>
  text.replace(HIDDEN, (hidden, emoji: string | undefined) =>
    emoji === undefined ? escaped(hidden) : emojiOf(emoji),
  );

/** An emoji of several characters stays whole if it is one picture. Two that only stand side by side look the same without the joint. */
function emojiOf(emoji: string): string {
  if (!HAS_UNSEEN.test(emoji)) return emoji;
  wholeOrHidden ??= new RegExp(String.raw`(\p{RGI_Emoji})|${UNSEEN}`, 'gv');
  return emoji.replace(wholeOrHidden, (hidden, whole: string | undefined) => whole ?? escaped(hidden));
}

/** As JSON writes it: one of more than 16 bits has two parts. */
const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');

/** A name from outside between double quotes, as JSON writes it: it cannot end the quotation either. */
export const inQuotes = (text: string): string => onOneLine(JSON.stringify(text).slice(1, -1));
