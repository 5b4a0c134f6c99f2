/**
 * `npm run proof:backup`: backups that are made under load, by the engine and by `conveyor backup`
 * through its admin socket, while the commit log rotates, checkpoints run, and now and then the key
 * of the secrets is replaced. Each opens with a key that is there, `check` is silent, and it has all
 * requests that were answered before it began, and none in part.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { nextTurn } from '../../src/core/clock.ts'
import { servedEngine } from '../../src/engine/served-engine.ts'
import { openEngine } from '../../src/open.ts'
import type { Answer, Asked } from '../support/backup-child.ts'
import { wrongIn } from '../support/backup-work.ts'
import { run } from '../support/cli-run.ts'
import { fractionsOf } from '../support/fractions.ts'
import { type BuiltChild, buildChild, type Edit } from '../support/store-child.ts'
import { type Given, type Outcome, type Proof, type Tried, tryEach } from './proof.ts'

type Way = 'engine' | 'socket' | 'cp'

const rekey_share = 0.15
/** Of each file, under whose load they begin at any time. */
const backups_each = 4
const later_ms_max = 15
const sequences_max = 6
/** So many there are while `cp` copies a file that is not small. */
const cp_checkpoints = 2

interface Program {
  readonly folder: string
  ask(asked: Asked): Promise<Answer>
  end(): Promise<void>
}

async function startProgram(edits: readonly Edit[]): Promise<Program> {
  const built: BuiltChild = await buildChild('backup-child.ts', edits)
  const child: ChildProcess = fork(built.script, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const waiting = new Map<number, (answer: Answer) => void>()
  let asked_count = 0
  const ended = once(child, 'exit')
  child.on('message', ({ id, ...answer }: Answer & { readonly id: number }) => {
    waiting.get(id)?.(answer)
    waiting.delete(id)
  })
  return {
    folder: built.folder,
    ask(asked) {
      const id = asked_count++
      child.send({ ...asked, id })
      return new Promise((resolve) => waiting.set(id, resolve))
    },
    async end() {
      child.disconnect()
      await ended
      await built.remove()
    },
  }
}

interface Sums {
  backups: number
  bytes: number
  requests: number
  /** That were finished while a backup was made. */
  checkpoints: number
  rekeys: number
  through_socket: number
}

/** Backups of one file under load, which grows older from one to the next. */
async function tryFile(
  program: Program,
  ways: readonly Way[],
  seed: number,
  sums: Sums,
): Promise<Tried> {
  const fraction = fractionsOf(seed)
  const below = (count: number): number => Math.floor(fraction() * count)
  const folder = await mkdtemp(join(program.folder, 'try-'))
  const path = join(folder, 'tasks.lmdb')
  const sequences = 1 + below(sequences_max)
  let faults = 0
  try {
    const started = await program.ask({ what: 'start', path, seed, sequences })
    if (started.error !== undefined) throw new Error(started.error)
    const wrong: string[] = []
    for (let n = 0; n < backups_each && wrong.length === 0; n++) {
      const way = ways[below(ways.length)] as Way
      const is_rekeyed = way !== 'cp' && fraction() < rekey_share
      await new Promise((resolve) => setTimeout(resolve, fraction() * later_ms_max))
      const copy = join(folder, `copy-${n}.lmdb`)
      const found = await tryCopy(program, { way, is_rekeyed, path, copy }, sums)
      faults += found.faults
      if (found.failure !== undefined) wrong.push(`backup ${n}: ${found.failure}`)
      for (const end of ['', '.key', '-log-0', '-log-1', '-lock']) {
        await rm(copy + end, { force: true })
      }
    }
    const stopped = await program.ask({ what: 'stop' })
    if (stopped.error !== undefined) throw new Error(stopped.error)
    sums.requests += stopped.acked.reduce((sum, count) => sum + count, 0)
    return wrong.length === 0 ? { faults } : { faults, failure: wrong.join() }
  } finally {
    await program.ask({ what: 'stop' })
    await rm(folder, { recursive: true, force: true })
  }
}

interface Copy {
  readonly way: Way
  readonly is_rekeyed: boolean
  readonly path: string
  readonly copy: string
}

async function tryCopy(program: Program, given: Copy, sums: Sums): Promise<Tried> {
  const { way, is_rekeyed, path, copy } = given
  const before = await program.ask({ what: 'state' })
  const [made, rekeyed] = await Promise.all([
    makeCopy(program, way, path, copy),
    is_rekeyed ? program.ask({ what: 'rekey' }) : undefined,
  ])
  const after = await program.ask({ what: 'state' })
  const error = made.error ?? rekeyed?.error ?? after.error
  if (error !== undefined) throw new Error(`${way}: ${error}`)
  sums.backups++
  sums.checkpoints += after.checkpoints - before.checkpoints
  sums.bytes += made.bytes ?? 0
  sums.rekeys += Number(is_rekeyed)
  sums.through_socket += Number(way === 'socket')
  await program.ask({ what: 'pause' })
  const wrong = await judgeCopy(copy, path, made.key_id, before.acked, after.sent)
  await program.ask({ what: 'resume' })
  const faults = after.checkpoints - before.checkpoints + Number(is_rekeyed)
  return wrong.length === 0
    ? { faults }
    : { faults, failure: `${way}: ${wrong.slice(0, 3).join('; ')}` }
}

interface Made {
  readonly bytes?: number
  readonly key_id?: string
  readonly error?: string
}

async function makeCopy(program: Program, way: Way, path: string, copy: string): Promise<Made> {
  if (way === 'engine') return program.ask({ what: 'backup', path: copy })
  if (way === 'socket') {
    const { exit, out, err } = await run(['backup', copy, '--db', path, '--json'])
    return exit === 0 ? (JSON.parse(out) as Made) : { error: err }
  }
  copyFileSync(path, copy)
  const { checkpoints } = await program.ask({ what: 'state' })
  const wanted = checkpoints + cp_checkpoints
  while ((await program.ask({ what: 'state' })).checkpoints < wanted) await nextTurn()
  for (const end of ['-log-0', '-log-1']) copyFileSync(path + end, copy + end)
  return {}
}

async function judgeCopy(
  copy: string,
  path: string,
  key_id: string | undefined,
  acked: readonly number[],
  sent: readonly number[],
): Promise<string[]> {
  const folder = join(path, '..')
  const keys = readdirSync(folder).filter((name) => name.startsWith('tasks.lmdb.key'))
  for (const key of keys) {
    copyFileSync(join(folder, key), `${copy}.key`)
    const engine = await openEngine(copy, { background: false })
    try {
      const { problem, id } = servedEngine(engine).keyState()
      if (problem !== undefined) continue
      const wrong = await wrongIn(engine, acked, sent)
      if (key_id !== undefined && key_id !== id) wrong.push(`it needs ${id}, and not ${key_id}`)
      return wrong
    } finally {
      await engine.close()
    }
  }
  return [`none of ${keys.join()} is its key`]
}

async function tryBackups(
  given: Given,
  ways: readonly Way[],
  edits: readonly Edit[] = [],
): Promise<Outcome> {
  const program = await startProgram(edits)
  const sums = { backups: 0, bytes: 0, requests: 0, checkpoints: 0, rekeys: 0, through_socket: 0 }
  try {
    const files = Math.ceil(given.n / backups_each)
    const outcome = await tryEach({ ...given, n: files }, (seed) =>
      tryFile(program, ways, seed, sums),
    )
    return { ...outcome, tried: sums.backups, figures: { ...sums } }
  } finally {
    await program.end()
  }
}

export const proof: Proof = {
  name: 'backup',
  unit: 'backups',
  says: 'a backup under load opens, checks and has all that was answered before it began',
  quick: 4,
  long: 500,
  run: (given) => tryBackups(given, ['engine', 'socket']),
  controls: [
    {
      says: 'cp of the data file, and of the commit log two checkpoints later',
      quick: 2,
      long: 50,
      run: (given) => tryBackups(given, ['cp']),
    },
    {
      says: 'a backup that does not wait until the commit log is in the data file',
      quick: 2,
      long: 50,
      run: (given) =>
        tryBackups(
          given,
          ['engine'],
          [
            {
              file: 'store/commit-log/tree.ts',
              from: 'return atRest(() => tree.backup(target))',
              to: 'return tree.backup(target)',
            },
          ],
        ),
    },
  ],
}
