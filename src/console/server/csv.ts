/**
 * Tasks as CSV: a GET sends those of the search that a POST of JSON has named before, a page at a
 * time as the reader takes them; a POST of CSV makes a task of each row of the body, a batch at a
 * time as it comes. Neither is held in memory, each session has one of them at a time, and both end
 * with its right.
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Emit } from '../../core/events.ts'
import { codeOf, isFault } from '../../core/faults.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { httpFault, replyJson } from '../../server/http/fault-response.ts'
import { csvLine, type Divider, dividers } from '../../task-operations/csv.ts'
import { type CsvEntry, type CsvOptions, opsOfCsv } from '../../task-operations/csv-import.ts'
import {
  type ColumnType,
  cellsOf,
  column_types,
  default_columns,
} from '../../task-operations/csv-tasks.ts'
import { applyTasks } from '../../task-operations/task-actions.ts'
import { viewsOf } from '../../task-operations/task-view.ts'
import { badRequest, type CallContext, idOf, input_bytes_max, textOf } from './calls/call.ts'
import { queryOf } from './calls/tasks.ts'
import { checkRight } from './calls.ts'
import type { Entrance } from './entrance.ts'
import type { CsvOutcome } from './messages.ts'
import { console_headers } from './page-files.ts'
import type { BodyReader } from './request-checks.ts'
import type { OpenSession } from './sessions.ts'
import type { ConsoleExchange } from './source.ts'

export const csv_path = '/csv'

interface CsvParts {
  readonly entrance: Entrance
  readonly emit: Emit
  readonly readBody: BodyReader
  context(): CallContext
}

const page_tasks = 500
const batch_ops_max = 500
const batch_chars_max = 4 * 1024 * 1024
const mistakes_max = 100
/** Of a row beside the data of its task. */
const row_chars_more = 64 * 1024
const name_chars_max = 255
const columns_max = 1_000

const is_json = /^application\/json *(?:;|$)/i
const busy = new WeakSet<OpenSession>()

interface Asked {
  readonly id: number
  readonly wanted: ReturnType<typeof queryOf>
}

/** The last search of a session that is to be sent. */
const asked = new WeakMap<OpenSession, Asked>()

export async function serveCsv(parts: CsvParts, exchange: ConsoleExchange): Promise<void> {
  const { entrance } = parts
  const session = await entrance.find(exchange, true)
  const is_post = exchange.request.method === 'POST'
  if (is_post) entrance.checkToken(exchange, session)
  const is_import = is_post && !is_json.test(exchange.request.headers['content-type'] ?? '')
  checkRight(entrance.rightOf(session), is_import ? 'operate' : 'look')
  if (is_post && !is_import) return keepSearch(parts, exchange, session)
  if (busy.has(session)) throw httpFault('overloaded', 'this session reads or sends CSV already')
  busy.add(session)
  try {
    await (is_import ? takeCsv(parts, exchange, session) : sendCsv(parts, exchange, session))
  } finally {
    busy.delete(session)
  }
}

/** Keeps a search for a GET, whose address must not show what was searched for. */
async function keepSearch(
  { readBody }: CsvParts,
  { request, response }: ConsoleExchange,
  session: OpenSession,
): Promise<void> {
  const wanted = { ...queryOf(await readBody(request, input_bytes_max)), limit: page_tasks }
  const id = (asked.get(session)?.id ?? 0) + 1
  asked.set(session, { id, wanted })
  replyJson(response, 200, { id }, console_headers)
}

async function sendCsv(
  { entrance, context }: CsvParts,
  { request, response, query }: ConsoleExchange,
  session: OpenSession,
): Promise<void> {
  const { engine } = context()
  const kept = asked.get(session)
  if (kept === undefined || String(kept.id) !== query.get('id')) {
    throw httpFault('not_found', 'no such search: ask for it again')
  }
  const { wanted } = kept
  // What is refused is refused before the first byte.
  let page = await engine.tasks.list(wanted)
  response.writeHead(200, {
    ...{ ...console_headers, 'Content-Type': 'text/csv; charset=utf-8' },
    'Content-Disposition': 'attachment; filename="tasks.csv"',
  })
  if (request.method === 'HEAD') return void response.end()
  response.write(csvLine(default_columns, ','))
  for (;;) {
    const views = await viewsOf(engine, page.tasks)
    const rows = views.map((task) => csvLine(cellsOf(task, default_columns), ',')).join('')
    if (response.destroyed) return
    if (rows !== '' && !response.write(rows)) {
      await Promise.race([once(response, 'drain'), once(response, 'close')])
    }
    if (page.cursor === undefined) return void response.end()
    if (response.destroyed) return
    checkRight(entrance.rightOf(session), 'look')
    page = await engine.tasks.list({ ...wanted, cursor: page.cursor })
  }
}

async function takeCsv(
  { entrance, emit, context }: CsvParts,
  exchange: ConsoleExchange,
  session: OpenSession,
): Promise<void> {
  const { request, response, query } = exchange
  if (!/^text\/csv *(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw httpFault('bad_request', 'Content-Type: text/csv', { status: 415 })
  }
  const { engine } = context()
  const conv_id = idOf('conv_id', query.get('conv_id'))
  const options = optionsOf(query)
  await engine.processes.show(conv_id)
  const run: Run = { created: 0, refused: 0, line: 0, mistakes: [] }
  let code: string = 'ok'
  try {
    const bytes = bytesOf(request)
    const row_chars_max = engine.limits.task_bytes_max + row_chars_more
    for await (const batch of batchesOf(opsOfCsv(bytes, conv_id, options, row_chars_max), engine)) {
      checkRight(entrance.rightOf(session), 'operate')
      await applyBatch(engine, batch, run)
    }
  } catch (error) {
    code = codeOf(error)
    // Nothing is done yet, so that it is a refusal as any other.
    if (!isFault(error) || run.line === 0) throw error
    run.stopped = `${error.message}; what stands after line ${run.line} may not be in`
  } finally {
    exchange.is_logged = true
    const counts = { conv_id, tasks: run.created }
    emit('console_acted', { act: 'import_tasks', by: session.name, code, ...counts })
  }
  const is_read = request.complete
  if (!is_read) request.resume()
  const headers = { ...console_headers, ...(is_read ? {} : { Connection: 'close' }) }
  replyJson(response, 200, run satisfies CsvOutcome, headers)
}

async function* bytesOf(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    // The answer has to go out on this connection.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) yield chunk as Buffer
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
    throw httpFault('bad_request', 'the connection was closed')
  }
}

type Run = { -readonly [Name in keyof CsvOutcome]: CsvOutcome[Name] }

async function* batchesOf(
  entries: AsyncIterable<CsvEntry>,
  { limits }: ServedEngine,
): AsyncGenerator<CsvEntry[]> {
  let batch: CsvEntry[] = []
  let chars = 0
  for await (const entry of entries) {
    batch.push(entry)
    if (typeof entry.op !== 'string') chars += entry.op.data_text.length
    if (batch.length < Math.min(batch_ops_max, limits.ops_max) && chars < batch_chars_max) continue
    yield batch
    batch = []
    chars = 0
  }
  if (batch.length > 0) yield batch
}

async function applyBatch(engine: ServedEngine, batch: CsvEntry[], run: Run): Promise<void> {
  const ops = batch.flatMap(({ op }) => (typeof op === 'string' ? [] : [op]))
  const results = ops.length === 0 ? [] : await applyTasks(engine, { ops })
  let at = 0
  const mistakes = [...run.mistakes]
  for (const { number, op } of batch) {
    const result = typeof op === 'string' ? undefined : results[at++]
    if (result?.proc === 'ok') run.created++
    else {
      run.refused++
      const says = typeof op === 'string' ? op : (result?.description ?? result?.proc ?? '')
      if (mistakes.length < mistakes_max) mistakes.push({ line: number, says })
    }
    run.line = number
  }
  run.mistakes = mistakes
}

/** Throws `bad_request` for what no file can be read by. */
function optionsOf(query: URLSearchParams): CsvOptions {
  const divider = query.get('divider') ?? ','
  if (!dividers.includes(divider as Divider)) throw badRequest('divider is none of , ; | and a tab')
  const encoding = query.get('encoding') ?? 'utf-8'
  const ref = query.get('ref_column')
  const types = query.getAll('convert')
  if (types.length > columns_max) throw badRequest(`convert: over ${columns_max} columns`)
  return {
    ...{ divider: divider as Divider, encoding: encodingOf(encoding) },
    has_names: query.get('no_names') === null,
    ref: ref === null ? undefined : textOf('ref_column', ref, name_chars_max),
    types: new Map(types.map(conversion)),
  }
}

function encodingOf(name: string): string {
  try {
    return new TextDecoder(name).encoding
  } catch {
    throw badRequest('encoding is none that is known here')
  }
}

function conversion(given: string): [name: string, type: ColumnType] {
  const at = given.lastIndexOf(':')
  const type = column_types.find((one) => one === given.slice(at + 1))
  if (at > 0 && type !== undefined) return [given.slice(0, at), type]
  throw badRequest(`convert is NAME:TYPE, with a type of ${column_types.join(', ')}`)
}
