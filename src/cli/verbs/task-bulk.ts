/**
 * Changes many tasks from the command line. The matches of the filter are counted and shown first,
 * and nothing changes before their number is typed, or with `--yes`. The holder of the file does a
 * bounded piece in each call, so stopping this program stops the work; the job keeps its progress,
 * and `task bulk ID` continues it.
 */
import { defined } from '../../core/defined.ts'
import type { BulkAction } from '../../engine/api/search-api.ts'
import type { Admin } from '../../server/admin/verbs.ts'
import type { SentBulk, SentJob } from '../../task-operations/searches.ts'
import type { TaskView } from '../../task-operations/task-view.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { fileVerb } from '../file-verb.ts'
import { type Io, isConfirmed, print } from '../io.ts'
import { jsonOf, newProgress, printDone, printList, taskJson } from '../output.ts'
import { clean, timeText } from '../text.ts'
import { type Flag, flag, type Given, isOn, text, word } from '../verb.ts'
import { filterOf } from './task-filter.ts'
import { rowsOf } from './task-list.ts'
import { dataOf } from './task-target.ts'

export const bulkFlags: readonly Flag[] = [
  flag('all', 'many: all live tasks of the process'),
  flag('dry-run', 'many: only count and show what would be changed'),
  flag('yes', 'many: without asking for their number'),
  flag('id JOB', 'many: a name for the job (default: one is made)'),
].map((flag) => ({ ...flag, no_env: true }))

export const bulk_notes = [
  'Without TASK the flags of a filter, or --all, say which live tasks are meant. They are counted',
  'and shown, and changed once their number is typed, or at once with --yes. A job that was cut',
  'off goes on by `npx conveyor task bulk JOB`.',
]

export const jobsVerb = fileVerb('task bulk [JOB]', {
  says: 'go on with a job on many tasks that was cut off, or list the jobs',
  async run(given, io) {
    const [id] = given.words
    return withAdmin(given, io, async (admin) => {
      if (id !== undefined) return finish(given, io, admin, await resume(admin, id))
      const jobs = await admin.call('task.bulkJobs', {})
      const heads = ['JOB', 'BEGUN', 'DONE', 'WHAT']
      return printList(given, io, jobs, { jsonOf: jobJson, heads, cellsOf })
    })
  },
})

function cellsOf(job: SentJob): string[] {
  const { id = '', started_ms, is_done, action, filter } = job
  const what = `${action} ${JSON.stringify(filter)}: ${countsText(job)}`
  return [id, timeText(started_ms), is_done ? 'yes' : 'no', what]
}

export async function changeMany(given: Given, io: Io, action: BulkAction): Promise<Exit> {
  const id = text(given, 'id')
  if (id !== undefined && !/^\P{Cc}{1,64}$/u.test(id)) throw usageError('--id: 1 to 64 characters')
  if (isOn(given, 'sync')) throw usageError('--sync is for one task')
  const to_node_id = text(given, 'to')
  const work: SentBulk = {
    action,
    filter: { ...filterOf(given, io), conv_id: word(given, 0) },
    ...(action === 'modify' ? { data_text: dataOf(given) } : {}),
    ...defined({ to_node_id }),
  }
  return withAdmin(given, io, async (admin) => {
    if (isOn(given, 'dry-run') || !isOn(given, 'yes')) {
      const { matched, sample } = await tryOut(admin, io, work)
      if (isOn(given, 'dry-run')) return printTried(given, io, matched, sample)
      if (matched === 0) return printTried(given, io, matched, sample)
      await print(io.stderr, rowsOf(sample, true, false))
      if (!(await isConfirmed(io, `${action} ${matched}? Type their number: `, matched)))
        return exits.refused
    }
    const job = await admin.call('task.bulk', id === undefined ? work : { ...work, id })
    return finish(given, io, admin, job)
  })
}

async function tryOut(
  admin: Admin,
  io: Io,
  work: SentBulk,
): Promise<{ readonly matched: number; readonly sample: readonly TaskView[] }> {
  const emit = newProgress(io, 1_000)
  const sample: TaskView[] = []
  let [matched, scanned] = [0, 0]
  let next: { readonly cursor?: string } = {}
  for (;;) {
    const found = await admin.call('task.bulk', { ...work, ...next, dry_run: true })
    matched += found.matched
    scanned += found.scanned
    sample.push(...(found.sample ?? []).slice(0, sample_max - sample.length))
    if (found.cursor === undefined) return { matched, sample }
    next = { cursor: found.cursor }
    await emit(`${scanned} tasks read, ${matched} found`)
  }
}

const sample_max = 10

async function printTried(
  given: Given,
  io: Io,
  matched: number,
  sample: readonly TaskView[],
): Promise<Exit> {
  const json = jsonOf({
    matched: String(matched),
    sample: `[${sample.map(taskJson).join(',')}]`,
  })
  const more = matched > sample.length ? `the first ${sample.length} of ` : ''
  const says = `${more}${matched} ${matched === 1 ? 'task' : 'tasks'}, nothing was changed\n`
  return printDone(given, io, json, `${rowsOf(sample, true, false)}${says}`)
}

const resume = (admin: Admin, id: string): Promise<SentJob> => admin.call('task.resumeBulk', { id })

/** Goes on piece by piece. Exit 1 where a task was refused. */
async function finish(given: Given, io: Io, admin: Admin, first: SentJob): Promise<Exit> {
  const { id = '' } = first
  if (!first.is_done) {
    const name = clean(id)
    await print(
      io.stderr,
      `job ${name}: if cut off, go on with \`npx conveyor task bulk ${name}\`\n`,
    )
  }
  const emit = newProgress(io, 1_000)
  let job = first
  while (!job.is_done) {
    job = await resume(admin, id)
    await emit(countsText(job))
  }
  await printDone(given, io, jobJson(job), `${job.action}: ${countsText(job)}\n`)
  return Object.keys(job.refused).length === 0 ? exits.done : exits.refused
}

const jobJson = ({ sample: _shown, ...job }: SentJob): string => JSON.stringify(job)

function countsText({ matched, changed, skipped, refused }: SentJob): string {
  const parts = [`${changed} of ${matched} done`]
  if (skipped > 0) parts.push(`${skipped} no longer so`)
  for (const [code, count] of Object.entries(refused)) parts.push(`${count} refused, ${code}`)
  return parts.join('; ')
}
