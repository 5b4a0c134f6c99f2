/**
 * Engines with one mistake each, which the model must find. All of them are one build, in which a
 * global names the mistake that is made; so one child tries them all.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Experiment } from '../../proof/proof.ts'
import { buildChild, type Edit } from '../store-child.ts'
import { child_flags } from './histories.ts'

interface Mutant {
  readonly says: string
  readonly file: string
  readonly from: string
  /** With `WRONG` for whether this mistake is made. */
  readonly to: string
}

/** The one that most histories find comes first. */
const mutants: readonly Mutant[] = [
  {
    says: 'the change time goes back with the clock',
    file: 'engine/tasks/task-store.ts',
    from: 'task.change_ms = Math.max(tx.now_ms, task.change_ms)',
    to: 'task.change_ms = WRONG ? tx.now_ms : Math.max(tx.now_ms, task.change_ms)',
  },
  {
    says: 'no signal when a node falls below its count',
    file: 'engine/tasks/run-queue.ts',
    from: 'if (!is_reached && !(before >= value && now < value)) continue',
    to: 'if (!is_reached && (WRONG || !(before >= value && now < value))) continue',
  },
  {
    says: 'a caller is not told that its task has failed',
    file: 'engine/tasks/task-store.ts',
    from: 'if (task.caller_id !== undefined && is_over[task.status])',
    to: "if (task.caller_id !== undefined && is_over[task.status] && !(WRONG && task.status === 'failed'))",
  },
  {
    says: 'a task that moves keeps its timer',
    file: 'engine/tasks/transitions.ts',
    from: 'task.due_ms = 0\n  if (task.trace',
    to: 'if (!WRONG) task.due_ms = 0\n  if (task.trace',
  },
  {
    says: 'less_or_eq is less',
    file: 'process/logics/comparisons.ts',
    from: 'value <= constant',
    to: '(WRONG ? value < constant : value <= constant)',
  },
  {
    says: 'a sum forgets what it was',
    file: 'engine/transactions/node-counters.ts',
    from: 'decodeSum(tx.get(key)) + value',
    to: '(WRONG ? 0 : decodeSum(tx.get(key))) + value',
  },
  {
    says: 'a task that is not kept keeps its ref',
    file: 'engine/tasks/task-store.ts',
    from: 'if (was_live && !live && !keep_ended) giveRefBack',
    to: 'if (was_live && !live && !keep_ended && !WRONG) giveRefBack',
  },
  {
    says: 'a queue gives its newest task',
    file: 'engine/tasks/copy-command.ts',
    from: 'reverse: newest })',
    to: 'reverse: newest || WRONG })',
  },
  {
    says: 'a grant of one right gives all',
    file: 'engine/tasks/evaluation-context.ts',
    from: '& grant_bits[can]) !== 0',
    to: '& (WRONG ? 7 : grant_bits[can])) !== 0',
  },
  {
    says: 'code overwrites what has changed meanwhile',
    file: 'process/logics/api-code.ts',
    from: 'applyDiff(objectOf(context.doc), diff)',
    to: 'applyDiff(WRONG ? before : objectOf(context.doc), diff)',
  },
]

/** As TypeScript, for the sources that are edited. */
const isWrong = (says: string): string => `((globalThis as { wrong?: string }).wrong === '${says}')`

/** What the child tells of a mutant: the histories tried, and the seed of the one that found it. */
export interface Found {
  readonly says: string
  readonly tried: number
  readonly seed: number | undefined
  readonly error: string | undefined
}

const time_mutants: readonly Mutant[] = [
  {
    says: 'ids follow the clock alone',
    file: 'engine/transactions/task-ids.ts',
    from: 'if (now_s > seconds)',
    to: 'if (now_s > seconds || (WRONG && now_s !== seconds))',
  },
  {
    says: 'timers fire a minute early',
    file: 'engine/timers/due-work.ts',
    from: 'Math.min(next_ms, tx.now_ms)',
    to: 'tx.now_ms + (WRONG ? 60_000 : 0)',
  },
  {
    says: 'an opening forgets timers',
    file: 'engine/timers/timer-transactions.ts',
    from: 'if (first_ms !== undefined) due.set',
    to: 'if (first_ms !== undefined && !WRONG) due.set',
  },
]

/** The control of a proof tries each of these mutants; the quick one only the first. */
function controlOf(
  mutants: readonly Mutant[],
  kind: 'histories' | 'months',
  long_max: number,
): Experiment {
  const quick_max = Math.min(200, long_max - 1)
  return {
    says: `an engine with one of ${mutants.length} mistakes`,
    ...{ quick: quick_max, long: long_max },
    async run({ n, seed, emit }) {
      const wanted = n === quick_max ? mutants.slice(0, 1) : mutants
      const found = await tryAll(wanted, kind, seed, n)
      for (const { says, tried, error } of found) {
        emit(`${says}: ${error === undefined ? 'not found' : 'found'} after ${tried}`)
      }
      const failures = found.flatMap(({ says, seed, error }) =>
        seed === undefined ? [] : [{ seed, says: `${says}: ${error}` }],
      )
      const tried = found.reduce((sum, one) => sum + one.tried, 0)
      // One mistake that is never found is one too many.
      const all = failures.length === wanted.length ? failures : []
      return { tried, faults: found.length, failures: all }
    },
  }
}

export const controls: readonly Experiment[] = [controlOf(mutants, 'histories', 5_000)]
export const time_controls: readonly Experiment[] = [controlOf(time_mutants, 'months', 20)]

async function tryAll(
  wanted: readonly Mutant[],
  kind: 'histories' | 'months',
  seed: number,
  n: number,
): Promise<readonly Found[]> {
  const edits = wanted.map(
    ({ says, file, from, to }): Edit => ({ file, from, to: to.replace('WRONG', isWrong(says)) }),
  )
  const child = await buildChild('model/mutants-child.ts', edits)
  try {
    const names = JSON.stringify(wanted.map(({ says }) => says))
    const args = [...child_flags, child.script, kind, String(seed), String(n), names]
    const running = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    running.stdout.on('data', (chunk) => {
      text += chunk
    })
    await once(running, 'close')
    return JSON.parse(text) as Found[]
  } finally {
    await child.remove()
  }
}
