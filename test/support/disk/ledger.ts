/**
 * What callers know of the tasks of a file: each has the version that was answered last, whole, or
 * one that was sent and whose answer is lost. What a request without an answer has sent is there
 * completely or not at all. The data of a version has its number, and may have a text of its own.
 */
import { openEngine } from '../../../src/open.ts'
import { tasksOf } from '../tasks-of.ts'
import { plain as conv_id } from '../workload.ts'

/** Versions from 1 on. */
interface Known {
  readonly ref: string
  acked: number
  sent: number
  is_canceled: boolean
}

/** Over all lives of the program. */
export interface Ledger {
  readonly tasks: Map<string, Known>
  /** The refs of each request without an answer. */
  readonly open: (readonly string[])[]
  /** Undefined where texts are not compared. */
  readonly textOf: ((ref: string, n: number) => string) | undefined
}

export const newLedger = (textOf?: Ledger['textOf']): Ledger => ({
  ...{ tasks: new Map(), open: [], textOf },
})

/** The tasks of a request, each with one version more that is sent. */
export const sendIn = ({ tasks }: Ledger, refs: readonly string[]): readonly Known[] =>
  refs.map((ref) => {
    const task = tasks.get(ref) ?? { ref, acked: 0, sent: 0, is_canceled: false }
    task.sent++
    tasks.set(ref, task)
    return task
  })

/** `unknown` for an answer that is lost, any other code for a refusal. */
export function answerIn({ tasks, open }: Ledger, refs: readonly string[], code: string): void {
  for (const ref of refs) {
    const task = tasks.get(ref) as Known
    if (code === 'ok') task.acked = task.sent
    else if (code !== 'unknown') task.sent = task.acked
  }
  if (code === 'unknown') open.push(refs)
}

/** A request that makes tasks, and was sent once. */
export interface SentOnce {
  readonly refs: readonly string[]
  readonly answer: { readonly code: string } | undefined
}

export function ledgerOf(requests: Iterable<SentOnce>): Ledger {
  const ledger = newLedger()
  for (const { refs, answer } of requests) {
    const { code = 'unknown' } = answer ?? {}
    sendIn(ledger, refs)
    answerIn(ledger, refs, code === 'unreachable' ? 'unknown' : code)
  }
  return ledger
}

/** The refs that are live for certain. */
export const liveRefs = ({ tasks }: Ledger): string[] =>
  [...tasks.values()].flatMap(({ ref, acked, is_canceled }) =>
    acked > 0 && !is_canceled ? [ref] : [],
  )

const versionIn = (data: unknown): number => ((data ?? {}) as { readonly n?: number }).n ?? 0

/** What is wrong with a task; one that others modify meanwhile may be newer than `acked`. */
export function wrongTask(
  { tasks, textOf }: Ledger,
  ref: string,
  data: unknown,
  acked = tasks.get(ref)?.acked ?? 0,
): string | undefined {
  const n = versionIn(data)
  const { sent = 0 } = tasks.get(ref) ?? {}
  if (n < acked) return `${ref}: version ${acked} was answered, there is ${n}`
  if (n > sent) return `${ref}: version ${n} is there, ${sent} was sent`
  if (n === 0 || textOf === undefined) return undefined
  const { text } = data as { readonly text?: string }
  return text === textOf(ref, n) ? undefined : `${ref}: its text is another`
}

/** Throws what is wrong in the file, opened when no server has it. */
export async function judgeFile(path: string, ledger: Ledger): Promise<void> {
  const engine = await openEngine(path, { background: false })
  try {
    const { breaches } = await engine.check()
    const wrong = breaches.slice(0, 3)
    const tasks = await tasksOf(engine, conv_id)
    const found = new Map(tasks.map(({ ref, data }) => [ref as string, data]))
    if (found.size !== tasks.length) wrong.push(`${tasks.length} tasks with ${found.size} refs`)
    for (const { ref, is_canceled } of ledger.tasks.values()) {
      const data = found.get(ref)
      if (is_canceled && data !== undefined) wrong.push(`${ref} was canceled and is live`)
      const one = is_canceled ? undefined : wrongTask(ledger, ref, data)
      if (one !== undefined) wrong.push(one)
    }
    for (const refs of ledger.open) {
      const kept = refs.filter((ref) => ledger.tasks.get(ref)?.is_canceled === false)
      const there = kept.filter((ref) => versionIn(found.get(ref)) === ledger.tasks.get(ref)?.sent)
      if (there.length === 0 || there.length === kept.length) continue
      wrong.push(`${there.length} of ${kept.length} tasks of a request with ${refs[0]}`)
    }
    for (const ref of found.keys()) {
      if (!ledger.tasks.has(ref)) wrong.push(`${ref} was never sent`)
    }
    if (wrong.length > 0) throw new Error(wrong.slice(0, 5).join('; '))
  } finally {
    await engine.close()
  }
}
