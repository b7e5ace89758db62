/** Plain text with the columns aligned: the first to the left, numbers to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [header, ...rows].map((row) => row.map(String));
  const widths = header.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const rule = widths.map((width) => '-'.repeat(width));
  return [lines[0]!, rule, ...lines.slice(1)]
    .map((line) => line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))))
    .map((line) => line.join('  '))
    .join('\n');
}
