/**
 * Characters that a terminal or a log does not take as plain text: line ends, escape sequences, and marks that turn the
 * direction.
 */
const CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Text from outside as a part of one log line: it can neither begin another line nor move the cursor. */
export const onOneLine = (text: string): string =>
  text.replace(CONTROL, (control) => `\\u${(control.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);

/** A name from outside between double quotes, as JSON writes it: it cannot end the quotation either. */
export const inQuotes = (text: string): string => onOneLine(JSON.stringify(text).slice(1, -1));
