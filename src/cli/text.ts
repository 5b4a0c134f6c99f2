/** Text for people: times, sizes, tables and fields, without control characters. */

/** UTC to the second, as `2026-01-31 08:05:09Z`. */
export function timeText(time_ms: number): string {
  return `${new Date(time_ms).toISOString().slice(0, 19).replace('T', ' ')}Z`
}

/** A time span for people: `40 s`, `3 h`, `12 d`. */
export function spanText(ms: number): string {
  const s = Math.round(Math.abs(ms) / 1_000)
  if (s < 120) return `${s} s`
  if (s < 7_200) return `${Math.round(s / 60)} min`
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`
}

/** Bytes for people: `640 MiB`. */
export function bytesText(bytes: number): string {
  const mib = bytes / 1_048_576
  if (mib >= 10_240) return `${Math.round(mib / 1_024)} GiB`
  return mib >= 1 ? `${Math.round(mib)} MiB` : `${bytes} bytes`
}

/** Rows below a heading; empty without rows. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  return columns([heads, ...rows])
}

/** Labels and their values, without those that are undefined. */
export function fields(
  rows: readonly (readonly [label: string, value: string | undefined])[],
): string {
  return columns(rows.filter(([, value]) => value !== undefined) as [string, string][])
}

export function linesText(lines: readonly string[]): string {
  return lines.map((line) => `${clean(line)}\n`).join('')
}

/** Rows as lines, columns aligned and two spaces apart. */
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

/** Text without control characters, line ends, and what turns the direction of text around. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, '·')
}

const length = (text: string): number => [...text].length
