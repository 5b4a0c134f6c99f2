/**
 * `task import` and `task create --file`: makes tasks of CSV or NDJSON of any length. Lines are
 * read on demand and sent in batches, a few of which are under way at once; results are printed in
 * the order of the file. No more than those batches is in memory.
 *
 * A bad line or a refused op is reported and skipped. A fault of a whole batch stops the import and
 * reports up to which line all lines are answered.
 */
import { createReadStream } from 'node:fs'
import { isNumberToken, isObject, parseJson, stringifyJson } from '../../codec/json.ts'
import { isFault } from '../../core/faults.ts'
import type { JsonValue } from '../../core/model.ts'
import type { Admin } from '../../server/admin/verbs.ts'
import { type CsvOptions, opsOfCsv } from '../../task-operations/csv-import.ts'
import type { RawOp, ResultView } from '../../task-operations/task-actions.ts'
import { type Exit, exits, failureOf, usageError } from '../exit-codes.ts'
import { type Io, linesOf, print, unreadable } from '../io.ts'
import { reasonOf, resultJson } from '../output.ts'

const batch_ops_max = 500
const batch_chars_max = 4 * 1024 * 1024
const batches_under_way_max = 4
const line_bytes_max = 16 * 1024 * 1024

interface Batch {
  /** In the order of the file: an op, or the mistake in its line. */
  readonly entries: { readonly number: number; readonly op: RawOp | string }[]
  chars: number
}

type Outcome = { readonly results: ResultView[] } | { readonly error: unknown }

interface Run {
  readonly io: Io
  readonly json: boolean
  readonly started_ms: number
  printed_ms: number
  created: number
  refused: number
  /** All lines up to this one are answered. */
  line: number
}

export interface ImportOptions {
  readonly conv_id: string
  /** `-` is standard input. */
  readonly file: string
  readonly json: boolean
  /** The file is CSV; otherwise NDJSON. */
  readonly csv?: CsvOptions
}

/** Exit 1 where a line was refused. Rejects where the import stopped. */
export async function createFromFile(admin: Admin, io: Io, options: ImportOptions): Promise<Exit> {
  const { json } = options
  const now_ms = io.clock.now_ms()
  const run: Run = {
    io,
    json,
    started_ms: now_ms,
    printed_ms: now_ms,
    created: 0,
    refused: 0,
    line: 0,
  }
  const { ops_max } = await admin.call('about', {})
  const under_way: { readonly batch: Batch; readonly outcome: Promise<Outcome> }[] = []
  const settleFirst = async (): Promise<void> => {
    const first = under_way.shift()
    if (first !== undefined) await settle(run, first.batch, await first.outcome)
  }
  try {
    for await (const batch of batchesOf(io, options, Math.min(batch_ops_max, ops_max))) {
      if (under_way.length === batches_under_way_max) await settleFirst()
      under_way.push({ batch, outcome: send(admin, io, batch) })
    }
    while (under_way.length > 0) await settleFirst()
  } finally {
    await Promise.all(under_way.map(({ outcome }) => outcome))
    await printProgress(run, true)
  }
  if (!json) await print(io.stdout, `created ${run.created}, refused ${run.refused}\n`)
  return run.refused === 0 ? exits.done : exits.refused
}

async function* batchesOf(io: Io, options: ImportOptions, ops_max: number): AsyncGenerator<Batch> {
  const { file, csv } = options
  const bytes: AsyncIterable<Uint8Array> = file === '-' ? io.stdin : createReadStream(file)
  let batch: Batch = { entries: [], chars: 0 }
  try {
    for await (const entry of csv === undefined
      ? entriesOfLines(bytes, options)
      : entriesOfRows(bytes, options, csv)) {
      const { number, op } = entry
      batch.entries.push({ number, op })
      if (typeof op !== 'string') batch.chars += op.data_text?.length ?? 0
      if (batch.entries.length === ops_max || batch.chars >= batch_chars_max) {
        yield batch
        batch = { entries: [], chars: 0 }
      }
    }
  } catch (error) {
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : unreadable(file, error)
  }
  if (batch.entries.length > 0) yield batch
}

type Entry = Batch['entries'][number]

async function* entriesOfLines(
  bytes: AsyncIterable<Uint8Array>,
  { conv_id }: ImportOptions,
): AsyncGenerator<Entry> {
  for await (const line of linesOf(bytes, line_bytes_max)) {
    if ('text' in line && line.text.trim() === '') continue
    const op = 'text' in line ? opOfLine(line.text, conv_id) : line.mistake
    yield { number: line.number, op }
  }
}

/** Throws a usage fault where the file is not as the flags say. */
async function* entriesOfRows(
  bytes: AsyncIterable<Uint8Array>,
  { conv_id }: ImportOptions,
  csv: CsvOptions,
): AsyncGenerator<Entry> {
  try {
    yield* opsOfCsv(bytes, conv_id, csv, line_bytes_max)
  } catch (error) {
    throw isFault(error) && error.code === 'bad_request' ? usageError(error.message) : error
  }
}

const overloaded_tries_max = 20
const overloaded_pause_ms = 250

/** Never rejects, because a batch may fail before its turn to be awaited. */
async function send(admin: Admin, io: Io, batch: Batch): Promise<Outcome> {
  const ops = batch.entries.flatMap(({ op }) => (typeof op === 'string' ? [] : [op]))
  for (let tries = 1; ; tries++) {
    try {
      return { results: ops.length === 0 ? [] : await admin.call('task.apply', { ops }) }
    } catch (error) {
      // `overloaded` applies nothing, so the batch may be sent again.
      const may_wait = isFault(error) && error.code === 'overloaded'
      if (!may_wait || tries === overloaded_tries_max) return { error }
      await io.sleep_ms(overloaded_pause_ms)
    }
  }
}

async function settle(run: Run, batch: Batch, outcome: Outcome): Promise<void> {
  if ('error' in outcome) throw stoppedFault(run, outcome.error)
  let at = 0
  let out = ''
  let complaints = ''
  for (const { number, op } of batch.entries) {
    const result = typeof op === 'string' ? badLine(op) : (outcome.results[at++] as ResultView)
    if (result.proc === 'ok') run.created++
    else run.refused++
    if (run.json) out += `${lineJson(number, result)}\n`
    else if (result.proc !== 'ok') complaints += `line ${number}: ${reasonOf(result)}\n`
    run.line = number
  }
  if (out !== '') await print(run.io.stdout, out)
  if (complaints !== '') await print(run.io.stderr, complaints)
  await printProgress(run, false)
}

function badLine(description: string): ResultView {
  return { ref: null, obj: 'task', proc: 'error', description }
}

function lineJson(number: number, result: ResultView): string {
  return `{"line":${number},${resultJson(result).slice(1)}`
}

/** The same fault, with the line from which to go on. */
function stoppedFault(run: Run, error: unknown): Error {
  const { exit, code, description } = failureOf(error)
  const text = `${description}; lines up to ${run.line} are answered, those behind may not be in`
  return Object.assign(new Error(text), { code, exit })
}

const progress_every_ms = 1_000

async function printProgress(run: Run, is_last: boolean): Promise<void> {
  const { io, json, started_ms, created, refused } = run
  const now_ms = io.clock.now_ms()
  if (json || (!is_last && now_ms - run.printed_ms < progress_every_ms)) return
  run.printed_ms = now_ms
  const rate = Math.round(((created + refused) * 1_000) / Math.max(now_ms - started_ms, 1))
  const [before, after] = io.stderr.isTTY === true && !is_last ? ['\r', ''] : ['', '\n']
  await print(io.stderr, `${before}${created + refused} lines, ${rate} a second${after}`)
}

/**
 * The create op of a line, or a sentence on its mistake. A line with a member `data` is a task,
 * `{"ref":…,"data":{…}}`, and may have no other member; any other object is the data itself. So a
 * typo in a task's line is refused and not stored as data.
 */
export function opOfLine(text: string, conv_id: string): RawOp | string {
  let value: JsonValue
  try {
    value = parseJson(text)
  } catch (error) {
    if (isFault(error)) return error.message
    throw error
  }
  if (!isObject(value)) return 'not a JSON object'
  if (!Object.hasOwn(value, 'data')) return { type: 'create', conv_id, data_text: text }
  const other_key = Object.keys(value).find((key) => key !== 'data' && key !== 'ref')
  if (other_key !== undefined) return `beside data and ref there is ${JSON.stringify(other_key)}`
  const data_text = dataText(value.data as JsonValue)
  if (data_text === undefined) return 'data is not a JSON object'
  const { ref } = value
  if (ref === undefined || ref === null) return { type: 'create', conv_id, data_text }
  if (typeof ref !== 'string' && typeof ref !== 'number' && !isNumberToken(ref)) {
    return 'ref is no string and no number'
  }
  return { type: 'create', conv_id, ref_text: stringifyJson(ref), data_text }
}

/** Data as JSON text; an empty array is an empty object (wire 1.1). Undefined for other values. */
export function dataText(data: JsonValue): string | undefined {
  if (Array.isArray(data) && data.length === 0) return '{}'
  return isObject(data) ? stringifyJson(data) : undefined
}
