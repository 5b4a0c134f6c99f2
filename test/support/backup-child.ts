/**
 * A program with an engine under load, for proof:backup: it opens a file as it is told, applies the
 * requests of its sequences until it is told to stop, but for pauses, and makes backups meanwhile. One
 * file at a time.
 */
import { openEngine } from '../../src/open.ts'
import { backup_processes, countersOf, requestOf } from './backup-work.ts'
import { fractionsOf } from './fractions.ts'

export interface Asked {
  readonly what: 'start' | 'state' | 'backup' | 'rekey' | 'pause' | 'resume' | 'stop'
  readonly path?: string
  readonly seed?: number
  readonly sequences?: number
}

export interface Answer {
  readonly error?: string
  /** By sequence: requests that were answered, and that were made. */
  readonly acked: readonly number[]
  readonly sent: readonly number[]
  readonly checkpoints: number
  /** Of a backup: the key that it needs. */
  readonly key_id?: string
}

const checkpoint_bytes = 64 * 1_024
const fill_max = 6_000
/** So many requests were answered before a start is answered. */
const first_requests = 20

let engine: Awaited<ReturnType<typeof openEngine>> | undefined
let acked: number[] = []
let sent: number[] = []
let is_over = false
let resumed: Promise<void> = Promise.resolve()
let resume = (): void => {}
let sequences_ended: Promise<unknown> = Promise.resolve()

async function start({ path = '', seed = 0, sequences = 1 }: Asked): Promise<void> {
  const opened = await openEngine(path, { admin: true, limits: { checkpoint_bytes } })
  engine = opened
  await opened.processes.putMany(backup_processes)
  await opened.users.add()
  acked = Array.from({ length: sequences }, () => 0)
  sent = [...acked]
  is_over = false
  for (const sequence of acked.keys()) await opened.apply(countersOf(sequence))
  let left = first_requests
  await new Promise<void>((resolve, reject) => {
    const runSequence = async (_: number, sequence: number): Promise<void> => {
      const fraction = fractionsOf(seed + sequence)
      for (let n = 1; ; n++) {
        await resumed
        if (is_over) return
        sent[sequence] = n
        const results = await opened.apply(
          requestOf(sequence, n, 'x'.repeat(Math.floor(fraction() * fill_max))),
        )
        const bad = results.find(({ proc }) => proc !== 'ok')
        if (bad !== undefined) throw new Error(`a request is answered ${bad.proc}`)
        acked[sequence] = n
        if (--left === 0) resolve()
      }
    }
    sequences_ended = Promise.all(acked.map(runSequence))
    sequences_ended.catch(reject)
  })
}

async function carryOut(asked: Asked): Promise<Partial<Answer>> {
  if (asked.what === 'start') await start(asked)
  if (asked.what === 'backup') return (await engine?.backup(asked.path as string)) ?? {}
  if (asked.what === 'rekey') await engine?.users.rekey()
  if (asked.what === 'pause') {
    resumed = new Promise((resolve) => {
      resume = resolve
    })
  }
  if (asked.what === 'resume') resume()
  if (asked.what === 'stop') {
    is_over = true
    resume()
    await sequences_ended
    await engine?.close()
    engine = undefined
  }
  return {}
}

process.on('message', async (asked: Asked & { readonly id: number }) => {
  const done = await carryOut(asked).catch((error: Error) => ({ error: error.message }))
  const checkpoints = engine?.statistics().store.file?.checkpoints ?? 0
  process.send?.({ id: asked.id, acked, sent, checkpoints, ...done })
})
