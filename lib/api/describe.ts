import { inQuotes } from '../runtime/text.js';

/** The replacement for a text that may be an address, which holds a password; undefined for any other text. */
export const withoutAddress = (text: string): string | undefined =>
  /[@:/]/.test(text) ? `a text of ${String(text.length)} characters` : undefined;

/** As `describe`, but without a text that may be an address, in any option. */
export const describeOption = (value: unknown): string =>
  (typeof value === 'string' ? withoutAddress(value) : undefined) ?? describe(value);

/** A short, safe description of a value for a message. */
export function describe(value: unknown): string {
  if (typeof value === 'string') {
    const text = value.length > 40 ? `${value.slice(0, 40)}… (${String(value.length)} characters)` : value;
    return `"${inQuotes(text)}"`;
  }
  if (typeof value === 'bigint') return `${String(value)}n`;
  if (typeof value === 'function') return `function ${value.name}`;
  if (Array.isArray(value)) return `an array of ${String(value.length)}`;
  if (typeof value === 'object' && value !== null) {
    const name = (value as { constructor?: { name?: string } }).constructor?.name;
    return `an object${name !== undefined && name !== 'Object' ? ` (${name})` : ''}`;
  }
  return String(value);
}
