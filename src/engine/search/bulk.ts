/**
 * Runs bulk jobs (`tasks.bulk`). Each step reads ahead in slices until 64 tasks match; one
 * transaction then changes those that still match and writes the job's record, so callers wait for
 * one short transaction at most, and a crash undoes a whole step.
 */
import { parsePlain } from '../../codec/json.ts'
import { nextTurn } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Task } from '../../core/model.ts'
import { quoted } from '../../process/report.ts'
import type { BulkInput, BulkJob, BulkOptions, TaskFilter } from '../api/search-api.ts'
import { viewTask } from '../tasks/task-view.ts'
import type { Parts } from '../transactions/parts.ts'
import {
  beginJob,
  type CheckedWork,
  checkWork,
  jobOf,
  listJobs,
  readJob,
  workOf,
} from './bulk-input.ts'
import { batchOf, newBulkSource, takeStep } from './bulk-step.ts'
import { cursorOf, placeOfCursor, search } from './search.ts'
import { type Place, runsOf, sourceOf } from './search-order.ts'

export interface BulkJobs {
  start(input: BulkInput): Promise<BulkJob>
  resume(id: string, options?: BulkOptions): Promise<BulkJob>
  list(): Promise<BulkJob[]>
}

const id_bytes = 6
const sample_max = 10

export function newBulkJobs(parts: Parts): BulkJobs {
  const { store, limits, chance, transactions } = parts
  const running = new Set<string>()

  async function run(id: string, checked: CheckedWork, options: BulkOptions): Promise<BulkJob> {
    if (running.has(id)) throw fault('not_possible', `bulk job ${id} is running already`)
    running.add(id)
    try {
      checkHealth(parts, checked)
      let record = await transactions.run((tx) => beginJob(tx, id, checked.work))
      if (record.is_done) return jobOf(id, record)
      const source = await newBulkSource(parts, checked, record)
      for (let steps = 0; !record.is_done && mayGoOn(steps, options); steps++) {
        const batch = await batchOf(parts, checked, source, record)
        checkHealth(parts, checked)
        const step = await takeStep(parts, id, checked, record, batch)
        record = step.record
        options.onProgress?.(jobOf(id, record), step.changed_ids)
        await nextTurn()
      }
      return jobOf(id, record)
    } finally {
      running.delete(id)
    }
  }

  /** Counts matches. A step reads at most `search_tasks_max` tasks. */
  async function tryOut(checked: CheckedWork, input: BulkInput): Promise<BulkJob> {
    const { filter, scope, work } = checked
    const { cursor } = input
    const source = sourceOf((view) => runsOf(view, filter, scope), false)
    const sample: Task[] = []
    let job: BulkJob = {
      ...{ action: work.action, filter: parsePlain(work.filter_text) as TaskFilter, sample },
      ...{ is_done: false, started_ms: parts.clock.now_ms() },
      ...{ scanned: 0, matched: 0, changed: 0, skipped: 0, refused: {} },
    }
    let from: Place | undefined
    if (cursor !== undefined) from = placeOfCursor(cursor, filter, false)
    for (let steps = 0; !job.is_done && mayGoOn(steps, input); steps++) {
      let { matched } = job
      const end = await search(parts, { filter, scope, source, from }, ({ task }) => {
        if (matched++ < sample_max) sample.push(viewTask(task))
        return true
      })
      from = end.last
      const scanned = job.scanned + end.scanned
      const { cursor: _before, ...rest } = job
      job = { ...rest, matched, scanned, is_done: from === undefined }
      if (from !== undefined) job = { ...job, cursor: cursorOf(from, filter, false) }
      input.onProgress?.(job, [])
    }
    return job
  }

  return {
    async start(input) {
      const work = workOf(input, limits)
      checkOptions(input)
      const checked = await checkWork(parts, work)
      if (input.dry_run === true) return tryOut(checked, input)
      return run(input.id ?? chance.bytes(id_bytes).toString('hex'), checked, input)
    },
    async resume(id, options = {}) {
      checkOptions(options)
      const record = await store.view((view) => readJob(view, String(id)))
      if (record === undefined) throw fault('not_possible', `there is no bulk job ${quoted(id)}`)
      return run(id, await checkWork(parts, record), options)
    },
    list: () => store.view(listJobs),
  }
}

function checkOptions({ steps_max = 1 }: BulkOptions): void {
  if (!Number.isInteger(steps_max) || steps_max < 1) {
    throw new RangeError('steps_max is no whole number above 0')
  }
}

function mayGoOn(steps: number, { steps_max = Infinity, signal }: BulkOptions): boolean {
  return steps < steps_max && signal?.aborted !== true
}

/** Throws if the engine refuses such a change; a cancel works on a full disk. */
function checkHealth({ admission }: Parts, { work }: CheckedWork): void {
  const health = admission.health()
  if (health === 'ok' || health === 'overloaded') return
  if (health !== 'no_space' || work.action !== 'cancel') throw fault(health)
}
