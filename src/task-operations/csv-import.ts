/**
 * The create ops in a CSV file of any length, a row at a time: what `conveyor task import` and the
 * operator's page send. A bad row is a sentence in its place; names that cannot be columns, and
 * bytes that are no text, end it with `bad_request`.
 */
import { fault } from '../core/faults.ts'
import { csvRows, type Divider } from './csv.ts'
import { type CsvColumns, columnsMistake, opOfRow } from './csv-tasks.ts'
import type { RawOp } from './task-actions.ts'

export interface CsvOptions {
  readonly divider: Divider
  /** A name of the Encoding Standard. */
  readonly encoding: string
  /** Otherwise columns are called `column_1` and so on. */
  readonly has_names: boolean
  readonly ref?: string | undefined
  readonly types: CsvColumns['types']
}

/** A row by the line where it begins: its op, or its mistake. */
export interface CsvEntry {
  readonly number: number
  readonly op: RawOp | string
}

export async function* opsOfCsv(
  bytes: AsyncIterable<Uint8Array>,
  conv_id: string,
  { divider, encoding, has_names, ref, types }: CsvOptions,
  row_chars_max: number,
): AsyncGenerator<CsvEntry> {
  let columns: CsvColumns | undefined
  for await (const row of csvRows(decoded(bytes, encoding), divider, row_chars_max)) {
    if ('cells' in row && row.cells.length === 1 && row.cells[0] === '') continue
    if (columns === undefined) {
      if ('mistake' in row) {
        throw fault('bad_request', `line ${row.number}, the names: ${row.mistake}`)
      }
      const names = row.cells.map((cell, at) => (has_names ? cell : `column_${at + 1}`))
      columns = { names, ref, types }
      const mistake = columnsMistake(columns)
      if (mistake !== undefined) throw fault('bad_request', mistake)
      if (has_names) continue
    }
    const op = 'mistake' in row ? row.mistake : opOfRow(row.cells, columns, conv_id)
    yield { number: row.number, op }
  }
}

async function* decoded(
  bytes: AsyncIterable<Uint8Array>,
  encoding: string,
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  const text = (chunk?: Uint8Array): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      throw fault('bad_request', `the file is not text in ${encoding}: name another encoding`)
    }
  }
  for await (const chunk of bytes) yield text(chunk)
  yield text()
}
