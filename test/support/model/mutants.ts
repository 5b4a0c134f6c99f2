/**
 * Engines with one mistake each, which the model must find. All of them are one build, in which a
 * global names the mistake that is made; so one child tries them all.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Experiment } from '../../proof/proof.ts'
import { buildChild, type Edit } from '../store-child.ts'

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
    file: 'engine/task-store.ts',
    from: 'task.change_ms = Math.max(tx.now_ms, task.change_ms)',
    to: 'task.change_ms = WRONG ? tx.now_ms : Math.max(tx.now_ms, task.change_ms)',
  },
  {
    says: 'no signal when a node falls below its count',
    file: 'engine/run-queue.ts',
    from: 'if (!is_reached && !(before >= value && now < value)) continue',
    to: 'if (!is_reached && (WRONG || !(before >= value && now < value))) continue',
  },
  {
    says: 'a caller is not told that its task has failed',
    file: 'engine/task-store.ts',
    from: 'if (task.caller_id !== undefined && is_over[task.status])',
    to: "if (task.caller_id !== undefined && is_over[task.status] && !(WRONG && task.status === 'failed'))",
  },
  {
    says: 'a task that moves keeps its timer',
    file: 'engine/transitions.ts',
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
    file: 'engine/node-counters.ts',
    from: 'decodeSum(tx.get(key)) + value',
    to: '(WRONG ? 0 : decodeSum(tx.get(key))) + value',
  },
  {
    says: 'a task that is not kept keeps its ref',
    file: 'engine/task-store.ts',
    from: 'if (was_live && !live && !keep_ended) giveRefBack',
    to: 'if (was_live && !live && !keep_ended && !WRONG) giveRefBack',
  },
  {
    says: 'a queue gives its newest task',
    file: 'engine/queue-command.ts',
    from: 'reverse: newest })',
    to: 'reverse: newest || WRONG })',
  },
  {
    says: 'a grant of one right gives all',
    file: 'engine/evaluation-context.ts',
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

const edits: readonly Edit[] = mutants.map(({ says, file, from, to }) => ({
  ...{ file, from, to: to.replace('WRONG', isWrong(says)) },
}))

/** What the child tells of a mutant: the histories tried, and the seed of the one that found it. */
export interface Found {
  readonly says: string
  readonly tried: number
  readonly seed: number | undefined
  readonly error: string | undefined
}

const quick_mutants = 1
const quick_max = 200
const long_max = 5_000

export const controls: readonly Experiment[] = [
  {
    says: `an engine with one of ${mutants.length} mistakes`,
    ...{ quick: quick_max, long: long_max },
    async run({ n, seed, tell }) {
      const wanted = n === quick_max ? mutants.slice(0, quick_mutants) : mutants
      const found = await tryAll(wanted, seed, n)
      for (const { says, tried, error } of found) {
        tell(`${says}: ${error === undefined ? 'not found' : 'found'} after ${tried} histories`)
      }
      const failures = found.flatMap(({ says, seed, error }) =>
        seed === undefined ? [] : [{ seed, says: `${says}: ${error}` }],
      )
      const tried = found.reduce((sum, one) => sum + one.tried, 0)
      // One mistake that no history finds is one too many.
      return {
        tried,
        faults: found.length,
        failures: failures.length < wanted.length ? [] : failures,
      }
    },
  },
]

async function tryAll(
  wanted: readonly Mutant[],
  seed: number,
  n: number,
): Promise<readonly Found[]> {
  const child = await buildChild('model/mutants-child.ts', edits)
  try {
    const names = JSON.stringify(wanted.map(({ says }) => says))
    const args = [child.script, String(seed), String(n), names]
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
