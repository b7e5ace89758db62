import { fit, pad, widthOf } from './text.js';

export interface Column {
  readonly title: string;
  /** Numbers stand on the right. */
  readonly right?: boolean;
  /** May be cut down to so many columns on a narrow terminal. */
  readonly least?: number;
}

const GAP = 2;

/** The lines of a table, its titles first, that are no wider than `width`. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const all = [columns.map(({ title }) => title), ...rows];
  const widths = columns.map((_, n) => all.reduce((most, row) => Math.max(most, widthOf(row[n] ?? '')), 0));
  narrow(widths, columns, width);
  return all.map((row) => {
    const cells = columns.map(({ right = false }, n) => {
      const cell = fit(row[n] ?? '', widths[n] ?? 0);
      return pad(cell, widths[n] ?? 0, right);
    });
    // A terminal that is narrower than all that cannot be cut.
    return fit(cells.join(' '.repeat(GAP)).trimEnd(), width);
  });
}

/** Takes from the widest of those that may be cut, until all fit. */
function narrow(widths: number[], columns: readonly Column[], width: number): void {
  let over = widths.reduce((sum, one) => sum + one, GAP * (columns.length - 1)) - width;
  for (; over > 0 && over < Infinity; over--) {
    let widest = -1;
    for (const [n, { least = Infinity }] of columns.entries()) {
      const spare = (widths[n] ?? 0) > least;
      if (spare && (widest < 0 || (widths[n] ?? 0) > (widths[widest] ?? 0))) widest = n;
    }
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}
