/**
 * A table as text in aligned columns.
 */

/** The first `texts` columns are aligned left, the others right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  texts: number,
): string {
  const widths = head.map((text, n) =>
    Math.max(text.length, ...rows.map((row) => row[n]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((text, n) => (n < texts ? text.padEnd(widths[n] ?? 0) : text.padStart(widths[n] ?? 0)))
      .join('  ')
      .trimEnd()
  return [line(head), ...rows.map(line)].join('\n')
}
