/**
 * Tables for people: plain columns, two spaces apart, a heading line. Cells are cleaned of control
 * characters, since titles and refs are callers' text and a terminal obeys what it is sent.
 */

/** Lines with a heading; nothing at all where there are no rows. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  return columns([heads, ...rows])
}

/** Rows as aligned lines without a heading. */
export function columns(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(clean))
  const widths: number[] = []
  for (const row of cells) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, length(cell))
  }
  const lines = cells.map((row) =>
    row.map((cell, at) => cell + ' '.repeat((widths[at] as number) - length(cell))).join('  '),
  )
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}

/** A text that moves no cursor. */
export function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, '·')
}

function length(text: string): number {
  return [...text].length
}
