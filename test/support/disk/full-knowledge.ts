/**
 * What callers of a server know: each task has the version that was answered last, whole, or one
 * that was sent and whose answer is lost. The data of a version depends on ref and number alone.
 */

import { status } from '@grpc/grpc-js'
import type { Client, ClientOp } from '../../../src/client/api.ts'
import { isClientFault } from '../../../src/client/faults.ts'
import { openEngine } from '../../../src/open.ts'
import { tasksOf } from '../tasks-of.ts'
import { plain as conv_id } from '../workload.ts'
import { pathIn } from '../workload-file.ts'
import type { FullServer } from './full-harness.ts'

/** Versions from 1 on. */
interface Known {
  readonly ref: string
  acked: number
  sent: number
  is_canceled: boolean
}

/** What is known of all tasks, over all lives of the program. */
export interface Knowledge {
  /** Of the text of a task. */
  readonly bytes: number
  readonly tasks: Map<string, Known>
  /** How many requests were answered with each code. */
  readonly codes: Map<string, number>
  /** Refs of their own for all that send. */
  next: number
}

export const newKnowledge = (bytes: number): Knowledge => ({
  ...{ bytes, tasks: new Map(), codes: new Map(), next: 0 },
})

const textOf = (ref: string, n: number, bytes: number): string =>
  `${ref} ${n} `.repeat(Math.ceil(bytes / ref.length)).slice(0, bytes)

/** Makes or changes tasks in one request: the code of its answer. Throws for a wrong one. */
export async function put(
  client: Client,
  knowledge: Knowledge,
  refs: readonly string[],
): Promise<string> {
  const { tasks, codes, bytes } = knowledge
  const all = refs.map((ref) => tasks.get(ref) ?? newTask(knowledge, ref))
  const ops = all.map((task): ClientOp => {
    task.sent++
    const data = { n: task.sent, text: textOf(task.ref, task.sent, bytes) }
    return { type: task.sent === 1 ? 'create' : 'modify', conv_id, ref: task.ref, data }
  })
  const code = await client
    .apply(ops)
    .then((results) => results.find(({ proc }) => proc !== 'ok')?.proc ?? 'ok', refusalOf)
  codes.set(code, (codes.get(code) ?? 0) + 1)
  for (const task of all) {
    if (code === 'ok') task.acked = task.sent
    else if (code !== 'unknown') task.sent = task.acked
  }
  if (!expected.has(code)) throw new Error(`a request was answered with ${code}`)
  return code
}

const expected: ReadonlySet<string> = new Set(['ok', 'no_space', 'unknown'])

function newTask({ tasks }: Knowledge, ref: string): Known {
  const task = { ref, acked: 0, sent: 0, is_canceled: false }
  tasks.set(ref, task)
  return task
}

/** Over gRPC with the status. `unknown` for a lost answer. */
function refusalOf(error: unknown): string {
  if (!isClientFault(error)) throw error
  const { code, outcome, cause } = error
  if (outcome === 'unknown' || code === 'unreachable') return 'unknown'
  const of_grpc = (cause as { readonly code?: unknown } | undefined)?.code
  if (typeof of_grpc !== 'number' || of_grpc === status.RESOURCE_EXHAUSTED) return code
  return `${code} ${status[of_grpc]}`
}

/** The refs that are live for certain. */
export const liveRefs = ({ tasks }: Knowledge): string[] =>
  [...tasks.values()].flatMap(({ ref, acked, is_canceled }) =>
    acked > 0 && !is_canceled ? [ref] : [],
  )

/** Throws where one of them is not as it was answered. */
export async function readTasks(
  client: Client,
  knowledge: Knowledge,
  refs: readonly string[],
): Promise<void> {
  const read = async (ref: string): Promise<void> => {
    const { acked } = knowledge.tasks.get(ref) as Known
    const task = await client.task({ conv_id, ref })
    const wrong = wrongOf(knowledge, ref, task?.data, acked)
    if (wrong !== undefined) throw new Error(wrong)
  }
  await Promise.all(refs.map(read))
}

/** A task that others modify meanwhile may be newer than `acked`. */
function wrongOf(
  { tasks, bytes }: Knowledge,
  ref: string,
  data: unknown,
  acked: number,
): string | undefined {
  const { n = 0, text = '' } = (data ?? {}) as { readonly n?: number; readonly text?: string }
  const { sent = 0 } = tasks.get(ref) ?? {}
  if (n < acked) return `${ref}: version ${acked} was answered, there is ${n}`
  if (n > sent) return `${ref}: version ${n} is there, ${sent} was sent`
  return n === 0 || text === textOf(ref, n, bytes) ? undefined : `${ref}: its text is another`
}

/** Whether a cancel was taken; where not, it must be for the disk. */
export async function cancel(
  { tasks }: Knowledge,
  ref: string,
  how: (target: { conv_id: string; ref: string }) => Promise<string>,
): Promise<boolean> {
  const code = await how({ conv_id, ref }).catch((error: { code?: string }) => error.code ?? error)
  if (code !== 'ok' && code !== 'no_space') throw new Error(`a cancel is answered with ${code}`)
  if (code === 'ok') (tasks.get(ref) as Known).is_canceled = true
  return code === 'ok'
}

/** Makes a task by each client; whether both were taken. */
export async function makeOne({ http, grpc }: FullServer, knowledge: Knowledge): Promise<boolean> {
  const codes = await Promise.all(
    [http, grpc].map((client) => put(client, knowledge, [`task ${knowledge.next++}`])),
  )
  return codes.every((code) => code === 'ok')
}

/** Throws what is wrong in the file, opened when no server has it. */
export async function judgeFile(folder: string, knowledge: Knowledge): Promise<void> {
  const engine = await openEngine(pathIn(folder), { background: false })
  try {
    const { breaches } = await engine.check()
    const wrong = breaches.slice(0, 3)
    const found = new Map(
      (await tasksOf(engine, conv_id)).map(({ ref, data }) => [ref as string, data]),
    )
    for (const { ref, acked, is_canceled } of knowledge.tasks.values()) {
      const data = found.get(ref)
      if (is_canceled && data !== undefined) wrong.push(`${ref} was canceled and is live`)
      const one = is_canceled ? undefined : wrongOf(knowledge, ref, data, acked)
      if (one !== undefined) wrong.push(one)
    }
    for (const ref of found.keys()) {
      if (!knowledge.tasks.has(ref)) wrong.push(`${ref} was never sent`)
    }
    if (wrong.length > 0) throw new Error(wrong.slice(0, 5).join('; '))
  } finally {
    await engine.close()
  }
}
