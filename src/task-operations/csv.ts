/**
 * Reads and writes CSV (RFC 4180) of any size, a row at a time. A cell may hold dividers, line ends
 * and doubled quotes inside quotes; rows end with CRLF, LF or CR.
 *
 * A spreadsheet runs a cell that begins with `=`, `+`, `-`, `@`, a tab or CR as a formula. Texts
 * that begin so, or with an apostrophe, are written with an apostrophe before them, which
 * `plainCell` takes away: what was written is read again unchanged.
 */

/** Of 1 is the line of the file where the row begins. */
export type CsvRow =
  | { readonly number: number; readonly cells: readonly string[] }
  | { readonly number: number; readonly mistake: string }

export const dividers = [',', ';', '|', '\t'] as const
export type Divider = (typeof dividers)[number]

type State = 'empty' | 'plain' | 'quoted' | 'closed'

/** A row of more than `row_chars_max` is a mistake; so are other breaches, and reading goes on. */
export async function* csvRows(
  chunks: AsyncIterable<string>,
  divider: Divider,
  row_chars_max: number,
): AsyncGenerator<CsvRow> {
  const ends = new Map(dividers.map((one) => [one, new RegExp(`[${one}\\r\\n]`, 'g')]))
  const end_of_cell = ends.get(divider) as RegExp
  let cells: string[] = []
  let cell = ''
  let chars = 0
  let state: State = 'empty'
  let mistake: string | undefined
  let line = 1
  let number = 1

  function add(piece: string): void {
    chars += piece.length
    if (chars <= row_chars_max) cell += piece
    else mistake ??= `longer than ${row_chars_max} characters`
  }

  function endCell(): void {
    cells.push(cell)
    cell = ''
    state = 'empty'
  }

  function endRow(): CsvRow {
    endCell()
    const row = mistake === undefined ? { number, cells } : { number, mistake }
    cells = []
    chars = 0
    mistake = undefined
    number = line
    return row
  }

  function* rowsIn(text: string): Generator<CsvRow> {
    for (let at = 0; at < text.length; ) {
      const char = text[at] as string
      if (state === 'quoted') {
        const quote = text.indexOf('"', at)
        const end = quote === -1 ? text.length : quote
        const piece = text.slice(at, end)
        line += piece.match(/\r\n|[\r\n]/g)?.length ?? 0
        add(piece)
        at = end + 1
        if (quote !== -1) state = 'closed'
      } else if (char === '"' && state === 'closed') {
        add('"')
        state = 'quoted'
        at++
      } else if (char === '"' && state === 'empty') {
        state = 'quoted'
        at++
      } else if (char === divider) {
        endCell()
        at++
      } else if (char === '\n' || char === '\r') {
        at += text.startsWith('\r\n', at) ? 2 : 1
        line++
        yield endRow()
      } else {
        if (state === 'closed') mistake ??= 'text follows a closing quote'
        state = 'plain'
        end_of_cell.lastIndex = at
        const end = end_of_cell.exec(text)?.index ?? text.length
        add(text.slice(at, end))
        at = end
      }
    }
  }

  // A CR at the end of a chunk may be half of a line end.
  let held = ''
  let is_first = true
  for await (const chunk of chunks) {
    let text = held + chunk
    if (text === '') continue
    if (is_first && text.startsWith('\ufeff')) text = text.slice(1)
    is_first = false
    held = text.endsWith('\r') ? '\r' : ''
    yield* rowsIn(held === '' ? text : text.slice(0, -1))
  }
  yield* rowsIn(held)
  // Set by the generator above, which the compiler does not see.
  const last = state as State
  if (last === 'quoted') mistake ??= 'a quote does not close'
  if (last !== 'empty' || cells.length > 0) yield endRow()
}

export function csvLine(cells: readonly string[], divider: Divider): string {
  return `${cells.map((cell) => quotedCell(cell, divider)).join(divider)}\r\n`
}

function quotedCell(cell: string, divider: Divider): string {
  const is_plain = !cell.includes(divider) && !/["\r\n]|^\s|\s$/.test(cell)
  return is_plain ? cell : `"${cell.replaceAll('"', '""')}"`
}

/** A text that no spreadsheet takes for a formula. */
export function textCell(text: string): string {
  return /^[=+\-@\t\r']/.test(text) ? `'${text}` : text
}

export function plainCell(cell: string): string {
  return /^'[=+\-@\t\r']/.test(cell) ? cell.slice(1) : cell
}
