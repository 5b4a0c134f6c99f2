/**
 * What callers did to a cluster, op by op: each is a line when it is sent and a line when it is
 * answered, with times of one monotonic clock, so that a history outlives the process that keeps it.
 *
 * A task is a list of values to its callers: a create gives the first, each modify appends one, a
 * read sees them all. All values of a history differ, so a list tells where each came from.
 */
import { appendFileSync, readFileSync } from 'node:fs'

export interface Op {
  readonly kind: 'create' | 'modify' | 'read'
  readonly ref: string
  /** What a create or a modify writes. */
  readonly value?: string
  readonly began_ms: number
  /** Infinity where no answer came. */
  readonly ended_ms: number
  /** `unknown`: it may have been applied, or may yet be. */
  readonly outcome: 'ok' | 'refused' | 'unknown'
  /** What a read saw; empty where there was no task, also for a modify that was refused for it. */
  readonly seen?: readonly string[]
}

export type Sent = Pick<Op, 'kind' | 'ref' | 'value'>
export type Answer = Pick<Op, 'outcome' | 'seen'> & {
  /** The code of a refusal, or why there is no answer. */
  readonly why?: string
}

export interface History {
  readonly ops: readonly Op[]
  /** Notes that an op is sent now; the function it returns notes its answer. */
  begin(sent: Sent): (answer: Answer) => void
  /** A line that is no op: a fault, a new round. */
  note(what: object): void
}

/** `now_ms` is a monotonic clock; `path` names the file, where one is kept. */
export function newHistory(now_ms: () => number, path?: string): History {
  const ops: Op[] = []
  let sent_count = 0
  const write = (line: object): void => {
    if (path !== undefined) appendFileSync(path, `${JSON.stringify(line)}\n`)
  }
  return {
    ops,
    begin(sent) {
      const op = sent_count++
      const began_ms = now_ms()
      write({ op, at_ms: began_ms, ...sent })
      return (answer) => {
        const at_ms = now_ms()
        write({ op, at_ms, ...answer })
        ops.push(opOf(sent, began_ms, answer, at_ms))
      }
    },
    note: (what) => write({ at_ms: now_ms(), ...what }),
  }
}

/** The ops of a file; those without an answer are unknown. */
export function readHistory(path: string): Op[] {
  type Line = Sent & Answer & { readonly op?: number; readonly at_ms: number }
  const begun = new Map<number, Line>()
  const ops: Op[] = []
  for (const text of readFileSync(path, 'utf8').split('\n')) {
    if (text === '') continue
    const line = JSON.parse(text) as Line
    if (line.op === undefined) continue
    const sent = begun.get(line.op)
    if (sent === undefined) begun.set(line.op, line)
    else {
      begun.delete(line.op)
      ops.push(opOf(sent, sent.at_ms, line, line.at_ms))
    }
  }
  const unanswered = { outcome: 'unknown' } as const
  return [...ops, ...[...begun.values()].map((sent) => opOf(sent, sent.at_ms, unanswered, 0))]
}

function opOf({ kind, ref, value }: Sent, began_ms: number, answer: Answer, at_ms: number): Op {
  const { outcome, seen } = answer
  return {
    ...{ kind, ref, began_ms, outcome },
    ended_ms: outcome === 'unknown' ? Number.POSITIVE_INFINITY : at_ms,
    ...(value === undefined ? {} : { value }),
    ...(seen === undefined ? {} : { seen }),
  }
}
