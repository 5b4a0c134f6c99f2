/**
 * `task create --file`: a file of any length as tasks. Lines are read as they are needed, sent in
 * batches of which a few are under way at once, and answered in the order of the file; nothing but
 * those batches is held in memory.
 *
 * A bad line or a refused op is named and passed over; a fault of a whole batch stops the reading,
 * and says up to which line everything is in.
 */
import { createReadStream } from 'node:fs'
import { isFault } from '../../core/faults.ts'
import type { RawOp, ResultView } from '../../server/admin/task-verbs.ts'
import type { Admin } from '../../server/admin/verbs.ts'
import { type Exit, exits, failureOf } from '../exit-codes.ts'
import { unreadable } from '../input.ts'
import { type Io, print } from '../io.ts'
import { linesOf } from '../lines.ts'
import { reasonOf, resultJson } from '../output.ts'
import { opOfLine } from '../task-line.ts'

const batch_ops_max = 500
const batch_chars_max = 4 * 1024 * 1024
const batches_under_way_max = 4
const line_bytes_max = 16 * 1024 * 1024

interface Batch {
  /** In the order of the file: an op, or what is wrong with its line. */
  readonly entries: { readonly number: number; readonly op: RawOp | string }[]
  chars: number
}

type Outcome = { readonly results: ResultView[] } | { readonly error: unknown }

interface Run {
  readonly io: Io
  readonly json: boolean
  readonly started_ms: number
  told_ms: number
  created: number
  refused: number
  /** Every line up to this one has its answer. */
  line: number
}

/** Exit 1 where any line was refused. Rejects where the reading had to stop. */
export async function createFromFile(
  admin: Admin,
  io: Io,
  options: { readonly conv_id: string; readonly file: string; readonly json: boolean },
): Promise<Exit> {
  const { conv_id, file, json } = options
  const now_ms = io.clock.now_ms()
  const run: Run = {
    io,
    json,
    started_ms: now_ms,
    told_ms: now_ms,
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
    for await (const batch of batchesOf(file, io, conv_id, Math.min(batch_ops_max, ops_max))) {
      if (under_way.length === batches_under_way_max) await settleFirst()
      under_way.push({ batch, outcome: send(admin, io, batch) })
    }
    while (under_way.length > 0) await settleFirst()
  } finally {
    await Promise.all(under_way.map(({ outcome }) => outcome))
    await tell(run, true)
  }
  if (!json) await print(io.stdout, `created ${run.created}, refused ${run.refused}\n`)
  return run.refused === 0 ? exits.done : exits.refused
}

async function* batchesOf(
  file: string,
  io: Io,
  conv_id: string,
  ops_max: number,
): AsyncGenerator<Batch> {
  let batch: Batch = { entries: [], chars: 0 }
  try {
    for await (const line of linesOf(
      file === '-' ? io.stdin : createReadStream(file),
      line_bytes_max,
    )) {
      if ('text' in line && line.text.trim() === '') continue
      const op = 'text' in line ? opOfLine(line.text, conv_id) : line.mistake
      batch.entries.push({ number: line.number, op })
      batch.chars += 'text' in line ? line.text.length : 0
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

const overloaded_tries_max = 20
const overloaded_pause_ms = 250

/** Never rejects, so that a batch may wait for its turn to be looked at. */
async function send(admin: Admin, io: Io, batch: Batch): Promise<Outcome> {
  const ops = batch.entries.flatMap(({ op }) => (typeof op === 'string' ? [] : [op]))
  for (let tries = 1; ; tries++) {
    try {
      return { results: ops.length === 0 ? [] : await admin.call('task.apply', { ops }) }
    } catch (error) {
      // Nothing of an overloaded batch was applied, so it may be sent again.
      const may_wait = isFault(error) && error.code === 'overloaded'
      if (!may_wait || tries === overloaded_tries_max) return { error }
      await io.sleep_ms(overloaded_pause_ms)
    }
  }
}

async function settle(run: Run, batch: Batch, outcome: Outcome): Promise<void> {
  if ('error' in outcome) throw stopped(run, outcome.error)
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
  await tell(run, false)
}

function badLine(description: string): ResultView {
  return { ref: null, obj: 'task', proc: 'error', description }
}

function lineJson(number: number, result: ResultView): string {
  return `{"line":${number},${resultJson(result).slice(1)}`
}

/** The same fault, saying from where to go on. */
function stopped(run: Run, error: unknown): Error {
  const { exit, code, description } = failureOf(error)
  const text = `${description}; lines up to ${run.line} are answered, those behind may not be in`
  return Object.assign(new Error(text), { code, exit })
}

const tell_every_ms = 1_000

/** Progress for people, at most once a second, and once at the end. */
async function tell(run: Run, is_last: boolean): Promise<void> {
  const { io, json, started_ms, created, refused } = run
  const now_ms = io.clock.now_ms()
  if (json || (!is_last && now_ms - run.told_ms < tell_every_ms)) return
  run.told_ms = now_ms
  const rate = Math.round(((created + refused) * 1_000) / Math.max(now_ms - started_ms, 1))
  const [before, after] = io.stderr.isTTY === true && !is_last ? ['\r', ''] : ['', '\n']
  await print(io.stderr, `${before}${created + refused} lines, ${rate} a second${after}`)
}
