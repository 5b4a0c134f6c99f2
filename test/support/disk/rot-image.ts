/**
 * A data file for flips of bits: tasks of every status, some of them larger than a page, users,
 * grants, definitions and a schedule. Once closed, and once as a kill leaves
 * it, when the last commits are in the commit log alone. With it goes what must be read back, for the
 * second also without the last commit, which makes a task.
 */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine } from '../../../src/engine/api/engine-api.ts'
import { openEngine } from '../../../src/open.ts'
import { callback_process, failing_process } from '../cli-process.ts'

export const image_ends = ['', '-log-0', '-log-1', '.key'] as const
export const image_kinds = ['closed', 'killed'] as const
export const image_name = 'tasks.lmdb'
const { obj_id: conv_id } = callback_process
const tasks_of_each = 16

/** What is read of an engine, as text. */
export interface Seen {
  /** By obj_id, the task as it is shown; those with a ref are shown by it too. */
  readonly tasks: Readonly<Record<string, { readonly conv_id: number; readonly shown: string }>>
  readonly refs: Readonly<Record<string, string>>
  readonly others: string
}

/**
 * Makes `FOLDER/closed` and `FOLDER/killed`, and `FOLDER/KIND.json` with what each must show;
 * `FOLDER/earlier` is the data file as it was before.
 */
export async function makeImages(folder: string): Promise<void> {
  const path = join(folder, image_name)
  const engine = await openEngine(path, {
    background: false,
    limits: { checkpoint_bytes: 64 * 1024 },
  })
  await engine.processes.put(callback_process)
  await engine.processes.put(failing_process)
  await engine.users.add({ id: 13000 })
  await engine.processes.share(conv_id, 13000)
  await engine.schedules.put({ id: 'nightly', cron: '0 3 * * *', timezone: 'Europe/Kyiv', conv_id })
  const ids: [number, string | undefined, string][] = []
  const fill = async (round: string): Promise<void> => {
    const given = Array.from({ length: tasks_of_each }, (_, n) => ({
      ref: n % 4 === 0 ? undefined : `${round}-${n}`,
      data: { n, text: 'text '.repeat(n === 7 ? 2_000 : 8) },
    }))
    for (const id of [conv_id, failing_process.obj_id]) {
      const made = await engine.apply(
        given.map(({ ref, data }) => {
          const op = { type: 'create', obj: 'task', conv_id: id, data }
          return ref === undefined ? op : { ...op, ref }
        }),
      )
      for (const [n, { obj_id = '' }] of made.entries()) ids.push([id, given[n]?.ref, obj_id])
    }
    for (const [id, , obj_id] of ids.filter((_, n) => n % 10 === 0)) {
      if (id === conv_id) await engine.modify({ conv_id, obj_id, data: { paid: true } })
    }
  }
  await fill('one')
  // Of what a backup copies nothing is in the commit log alone.
  await engine.backup(join(folder, 'backup'))
  copyFileSync(path, join(folder, 'earlier'))
  await fill('two')
  const cut_seen = await seenOf(engine, ids)
  const { obj_id = '' } = await engine.create({ conv_id, ref: 'last', data: {} })
  ids.push([conv_id, 'last', obj_id])
  const shown = { seen: await seenOf(engine, ids), cut_seen }
  writeFileSync(join(folder, 'killed.json'), JSON.stringify(shown))
  copyImage(path, join(folder, 'killed'))
  await engine.close()
  const again = await openEngine(path, { background: false })
  const seen = await seenOf(again, ids)
  await again.close()
  writeFileSync(join(folder, 'closed.json'), JSON.stringify({ seen }))
  copyImage(path, join(folder, 'closed'))
}

function copyImage(path: string, to: string): void {
  mkdirSync(to)
  for (const end of image_ends) {
    if (existsSync(path + end)) copyFileSync(path + end, join(to, image_name + end))
  }
}

async function seenOf(
  engine: Engine,
  ids: readonly (readonly [number, string | undefined, string])[],
): Promise<Seen> {
  const tasks: Record<string, { conv_id: number; shown: string }> = {}
  const refs: Record<string, string> = {}
  for (const [id, ref, obj_id] of ids) {
    const shown = shownOf(await engine.task({ conv_id: id, obj_id }))
    if (shown === undefined) throw new Error(`${obj_id} is not there`)
    tasks[obj_id] = { conv_id: id, shown }
    if (ref !== undefined) refs[`${id} ${ref}`] = obj_id
  }
  return { tasks, refs, others: await othersOf(engine) }
}

export function shownOf(task: Awaited<ReturnType<Engine['task']>>): string | undefined {
  if (task === undefined) return undefined
  const { obj_id, conv_id, ref, status, node_id, data_text, change_time_ms } = task
  return JSON.stringify([obj_id, conv_id, ref, status, node_id, data_text, change_time_ms])
}

/** All that is no task. */
export async function othersOf(engine: Engine): Promise<string> {
  const processes = await engine.processes.list()
  const definitions = await Promise.all(
    processes.map(({ conv_id }) => engine.processes.show(conv_id)),
  )
  return JSON.stringify([
    processes,
    definitions,
    await engine.users.list(),
    await engine.schedules.list(),
    await engine.tasks.count(),
  ])
}
