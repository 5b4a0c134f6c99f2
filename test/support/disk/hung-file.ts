/** What a program on a disk that hung has left in its file, opened on one that works. */
import { openEngine } from '../../../src/open.ts'
import { tasksOf } from '../tasks-of.ts'
import { plain } from '../workload.ts'
import type { SentRequest } from './hung-callers.ts'

/** A request of which the file is judged: its tasks, and what became of it. */
export type Judged = Pick<SentRequest, 'refs'> & {
  readonly answer: { readonly code: string } | undefined
}

/** What is wrong in the file, if anything is. */
export async function wrongInFile(
  path: string,
  requests: readonly Judged[],
): Promise<string | undefined> {
  const engine = await openEngine(path, { background: false })
  try {
    const tasks = await tasksOf(engine, plain)
    const refs = new Set(tasks.map(({ ref }) => ref))
    let expected = 0
    for (const { refs: own, answer } of requests) {
      const there = own.filter((ref) => refs.has(ref)).length
      expected += there
      const what = `${there} of ${own.length} tasks of ${own[0]}, which ${endOf(answer)}`
      const is_right =
        answer?.code === 'ok'
          ? there === own.length
          : isUnknown(answer)
            ? there === 0 || there === own.length
            : there === 0
      if (!is_right) return `there are ${what}`
    }
    if (expected !== tasks.length) return `${tasks.length} tasks instead of ${expected}`
    const { breaches } = await engine.check()
    return breaches.length === 0 ? undefined : `check: ${breaches}`
  } finally {
    await engine.close()
  }
}

function isUnknown(answer: Judged['answer']): boolean {
  return answer === undefined || answer.code === 'unreachable'
}

function endOf(answer: Judged['answer']): string {
  return answer === undefined ? 'has no answer' : `was answered ${answer.code}`
}
