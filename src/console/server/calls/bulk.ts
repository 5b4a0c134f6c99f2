/**
 * The calls that count and change many tasks: all that a filter finds, as a bulk job of the engine
 * that each call continues for about a second, or those that were chosen one by one, in one call.
 */
import { rawJson } from '../../../codec/json.ts'
import { isFault } from '../../../core/faults.ts'
import type { Doc } from '../../../core/model.ts'
import type { BulkAction, BulkJob, BulkOptions } from '../../../engine/api/search-api.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { received } from '../../../task-operations/searches.ts'
import { maskWritten } from '../../../task-operations/task-actions.ts'
import type { WorkedJob } from '../messages.ts'
import {
  type Acted,
  badRequest,
  type CallRow,
  cursorOf,
  idOf,
  inputOf,
  namedIn,
  objectOf,
  objIdOf,
  optional,
  textOf,
  whereOf,
} from './call.ts'
import { changeChosen, type Work } from './chosen.ts'
import { settledCounts } from './settling.ts'

const call_ms = 1_000
/** A bound for a clock that stops. A step changes 64 tasks, or reads 10,000. */
const steps_max = 1_000
const id_chars_max = 64
const chosen_max = 1_000

export const bulk_jobs: CallRow<'bulk_jobs'> = {
  right: 'look',
  async run({ engine }, given) {
    inputOf(given, [])
    return { jobs: await engine.tasks.bulkJobs() }
  },
}

export const bulk_count: CallRow<'bulk_count'> = {
  right: 'operate',
  async run({ engine }, given) {
    const { work, obj_ids, cursor } = await workOf(engine, given)
    if (obj_ids !== undefined) return changeChosen(engine, work, obj_ids, true)
    const may_count = Object.keys(work.filter).every((name) => counted_members.includes(name))
    const few = may_count ? { steps_max: 1 } : {}
    const job = await inAboutASecond(engine, (options) =>
      engine.tasks.bulk({ ...work, ...options, ...few, ...cursor, dry_run: true }),
    )
    return may_count && !job.is_done ? counted(engine, work, job) : job
  },
}

export const bulk: CallRow<'bulk'> = {
  right: 'operate',
  acts(input, job) {
    const { filter, action } = (input ?? {}) as { readonly filter?: unknown; action?: unknown }
    const known = actions.find((one) => one === action)
    return { ...namedIn(filter), ...(known && { action: known }), ...changedBy(job) }
  },
  async run({ engine }, given) {
    const { work, obj_ids } = await workOf(engine, given)
    if (obj_ids !== undefined) return changeChosen(engine, work, obj_ids)
    return workedFor(engine, (options) => engine.tasks.bulk({ ...work, ...options }))
  },
}

export const bulk_resume: CallRow<'bulk_resume'> = {
  right: 'operate',
  acts: (_, job) => ({
    ...namedIn(job?.filter),
    ...(job && { action: job.action }),
    ...changedBy(job),
  }),
  async run({ engine }, given) {
    const id = textOf('id', inputOf(given, ['id']).id, id_chars_max)
    return workedFor(engine, (options) => engine.tasks.resumeBulk(id, options))
  },
}

const counted_members: readonly string[] = ['conv_id', 'node_id', 'status']

/** The same by the engine's counters, which read no task. */
async function counted(engine: ServedEngine, work: Work, job: BulkJob): Promise<BulkJob> {
  const { status = 'live', ...where } = work.filter
  const wanted = work.action === 'retry' ? 'failed' : status
  const { total } = await engine.tasks.count({ ...where, status: wanted })
  const { cursor: _read, ...rest } = job
  return { ...rest, matched: total, is_done: true }
}

function changedBy(job: BulkJob | undefined): Acted {
  return job === undefined ? {} : { tasks: job.changed }
}

/** After retries also what became of the tasks. */
async function workedFor(
  engine: ServedEngine,
  run: (options: BulkOptions) => Promise<BulkJob>,
): Promise<WorkedJob> {
  const changed: string[] = []
  const job = await inAboutASecond(engine, run, changed)
  if (job.action !== 'retry') return job
  return { ...job, became: await settledCounts(engine, changed) }
}

/** Ends the work after the step in which the second is over. */
async function inAboutASecond(
  { clock }: ServedEngine,
  run: (options: BulkOptions) => Promise<BulkJob>,
  changed: string[] = [],
): Promise<BulkJob> {
  const end = new AbortController()
  const until_ms = clock.now_ms() + call_ms
  const onProgress: BulkOptions['onProgress'] = (_job, changed_ids) => {
    for (const obj_id of changed_ids) changed.push(obj_id)
    if (clock.now_ms() >= until_ms) end.abort()
  }
  // The sample of a dry run has the data of tasks, which the call does not return.
  const { sample: _data, ...job } = await run({ signal: end.signal, steps_max, onProgress })
  return job
}

const actions: readonly BulkAction[] = ['cancel', 'retry', 'modify', 'move']

interface Asked {
  readonly work: Work
  readonly obj_ids: readonly string[] | undefined
  readonly cursor: { readonly cursor?: string }
}

/** The engine checks the filter, and the node by it. */
async function workOf(engine: ServedEngine, given: unknown): Promise<Asked> {
  const names = ['action', 'filter', 'obj_ids', 'data_text', 'to_node_id', 'cursor'] as const
  const input = inputOf(given, names)
  const action = actions.find((one) => one === input.action)
  if (action === undefined) throw badRequest(`action is one of ${actions.join(', ')}`)
  const { where_text, ...filter } = objectOf('filter', input.filter)
  const where = optional('where_text', where_text, whereOf)
  if ((action === 'modify') !== (input.data_text !== undefined)) {
    throw badRequest(`data_text ${action === 'modify' ? 'is missing' : `is not for ${action}`}`)
  }
  const may_go = action === 'move' || action === 'retry'
  if (input.to_node_id === undefined ? action === 'move' : !may_go) {
    throw badRequest(`to_node_id ${may_go ? 'is missing' : `is not for ${action}`}`)
  }
  const obj_ids = input.obj_ids === undefined ? undefined : chosenOf(input.obj_ids)
  const data = input.data_text === undefined ? {} : { data: dataOf(input.data_text, engine) }
  const { conv_id } = optional('conv_id', filter.conv_id, (_, id) => idOf('conv_id', String(id)))
  const masked = data.data && (await maskWritten(engine, conv_id, data.data.text))
  if (masked !== undefined) throw badRequest(masked)
  const to = optional('to_node_id', input.to_node_id, idOf)
  return {
    work: { action, filter: received({ ...filter, ...where }), ...data, ...to },
    obj_ids,
    cursor: optional('cursor', input.cursor, cursorOf),
  }
}

function chosenOf(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > chosen_max) {
    throw badRequest(`obj_ids is no list of 1 to ${chosen_max} ids`)
  }
  return [...new Set(value.map((one) => objIdOf('one of obj_ids', one)))]
}

/** Bounded as the data of a task is. */
function dataOf(value: unknown, { limits }: ServedEngine): Doc {
  const { nesting_max, body_values_max: values_max, task_bytes_max } = limits
  if (typeof value !== 'string') throw badRequest('data_text is no text')
  if (Buffer.byteLength(value) > task_bytes_max) {
    throw badRequest(`data_text is over ${task_bytes_max} bytes`)
  }
  try {
    return rawJson(value, { nesting_max, values_max })
  } catch (error) {
    if (isFault(error)) throw badRequest(`data_text is no JSON object: ${error.message}`)
    throw error
  }
}
