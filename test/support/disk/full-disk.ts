/**
 * One disk that a server fills: of chance is how large it is, who takes its last byte and when, and
 * how there is room again. Throws what is wrong.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freeBytesAgain } from '../../../src/store/space-watch.ts'
import { fractionsOf } from '../fractions.ts'
import type { Edit } from '../store-child.ts'
import { becomes } from '../waits.ts'
import { plain as conv_id } from '../workload.ts'
import {
  canBeCanceled,
  canBeRead,
  checkEvents,
  hasNotFailed,
  isRefused,
  isUnready,
} from './full-checks.ts'
import { startLoad } from './full-load.ts'
import { cancel, type FullServer, type FullWork, makeOne, openFullServer } from './full-server.ts'
import { type DiskHarness, fetchText } from './harness.ts'
import { judgeFile, liveRefs, newLedger } from './ledger.ts'
import type { Limits } from './serve.ts'
import { freeBytesOf, mountDisk, type SmallDisk, takeTheRest } from './small-disk.ts'

const mib = 1024 * 1024
/** Tasks that are read where it is not all. */
const some = 20
const kinds = ['tmpfs', 'ext4'] as const

/**
 * How there is room again. `others` remove a file; `tasks` are canceled one by one, or by a `bulk`
 * job; `killed` and `closed`: others remove a file from under the next process.
 */
const ends = ['others', 'tasks', 'bulk', 'killed', 'closed'] as const

/** What a seed tries. */
interface Form {
  readonly kind: (typeof kinds)[number]
  readonly megabytes: number
  /** Of each of two files that others have on the disk, and may remove. */
  readonly others_mb: number
  /** Of a task. */
  readonly bytes: number
  readonly limits: Limits & { readonly disk_free_bytes_min: number }
  /** How often others take the last byte while callers fill the disk. */
  readonly thefts: number
  /** Whether callers fill the disk once more before the end, once others have made room. */
  readonly fills_twice: boolean
  /** Whether others take the last byte of the full disk, too. */
  readonly takes_last: boolean
  readonly end: (typeof ends)[number]
}

function formOf(seed: number, fraction: () => number): Form {
  const one = <T>(values: readonly T[]): T => values[Math.floor(fraction() * values.length)] as T
  const kind = kinds[seed % 2] as Form['kind']
  const end = one(ends)
  // Free pages count half: where they make the room, they must be many.
  const is_own_room = end === 'tasks' || end === 'bulk'
  const free_mb = one(is_own_room ? [16, 32] : [16, 32, 64])
  // Writing resumes with an eighth more.
  const others_mb = free_mb / 8 + one([4, 6])
  // A small ext4 has a journal of 4 MB, and keeps a twentieth for itself.
  const own_mb = kind === 'ext4' ? 10 + Math.ceil(free_mb / 5) : 0
  return {
    ...{ kind, others_mb, end },
    megabytes:
      free_mb +
      2 * others_mb +
      own_mb +
      (is_own_room ? 30 : 6 + free_mb / 8) +
      Math.floor(6 * fraction()),
    bytes: one(is_own_room ? [20_000, 50_000] : [1_500, 5_000, 50_000]),
    limits: {
      disk_free_bytes_min: free_mb * mib,
      // At 64 kB there is always a rotation or a checkpoint under way.
      checkpoint_bytes: one([64 * 1024, mib, 0]),
      ended_kept_ms: 0,
    },
    thefts: Math.floor(3 * fraction()),
    fills_twice: fraction() < 0.3,
    takes_last: fraction() < 0.5,
  }
}

/** Counts over all tries. */
export interface Counts {
  tmpfs: number
  ext4: number
  tasks: number
  refused: number
  kills: number
}

/** A control has another program, other limits, or always the same form. */
export interface Change {
  readonly edits?: readonly Edit[]
  readonly form?: Partial<Form>
  readonly limits?: Limits
}

/** The faults that were injected. */
export async function fillDisk(
  harness: DiskHarness,
  seed: number,
  change: Change,
  counts: Counts,
): Promise<number> {
  const fraction = fractionsOf(seed)
  const form = { ...formOf(seed, fraction), ...change.form }
  const disk = mountDisk(form.kind, form.megabytes)
  if (disk === undefined) throw new Error('no disk could be mounted')
  counts[form.kind]++
  const own = join(disk.path, 'own')
  mkdirSync(own)
  const path = harness.putFile(own)
  // One file for each time that they make room.
  for (const name of ['others', 'more']) {
    writeFileSync(join(disk.path, name), Buffer.alloc(form.others_mb * mib, 1))
  }
  const work = newWork(form.bytes)
  const { edits = [] } = change
  const limits = { ...form.limits, ...change.limits }
  const start = async () => openFullServer(await harness.serve(path, limits, { edits }))
  const trial: Trial = { served: await start(), start, disk, form, work, fraction }
  try {
    await fill(trial, counts)
    await makeRoom(trial)
    hasNotFailed(trial.served, form.thefts > 0 || form.takes_last)
    await trial.served.end('SIGTERM')
    await judgeFile(path, work.ledger)
    counts.tasks += work.ledger.tasks.size
    counts.refused += work.codes.get('no_space') ?? 0
    return 1 + form.thefts + Number(form.takes_last)
  } catch (error) {
    const { events, said } = trial.served
    const logged = events()
      .filter((event) => event !== 'request_refused')
      .slice(-20)
    const { stack } = error as Error
    throw new Error(`${JSON.stringify(form)}: ${stack}\nlogged ${logged}; said ${said()}`)
  } finally {
    await trial.served.end('SIGKILL')
    disk.remove()
  }
}

function newWork(bytes: number): FullWork {
  const textOf = (ref: string, n: number): string =>
    `${ref} ${n} `.repeat(Math.ceil(bytes / ref.length)).slice(0, bytes)
  let refs = 0
  const newRef = (): string => `task ${refs++}`
  return { ...{ bytes, textOf, newRef }, ledger: newLedger(textOf), codes: new Map() }
}

interface Trial {
  /** That runs now. */
  served: FullServer
  start(): Promise<FullServer>
  readonly disk: SmallDisk
  readonly form: Form
  readonly work: FullWork
  readonly fraction: () => number
}

/** Callers fill the disk, others take its last byte; at the end it is full and the callers have stopped. */
async function fill(trial: Trial, counts: Counts): Promise<void> {
  const { served, disk, form, work, fraction } = trial
  const { disk_free_bytes_min } = form.limits
  const load = startLoad(served, work, fraction)
  for (let thefts = 0; thefts < form.thefts; thefts++) {
    await sleep(20 + 300 * fraction())
    const giveBack = await takeTheRest(disk)
    await load.refused()
    await giveBack()
    const again = freeBytesAgain(disk_free_bytes_min)
    if (freeBytesOf(disk) > again + roomy_bytes) await load.taken()
  }
  await load.refused()
  let fillings = 1
  if (form.fills_twice) {
    await isRefused(served, disk, disk_free_bytes_min)
    rmSync(join(disk.path, 'more'))
    await load.taken()
    await load.refused()
    fillings++
  }
  if (liveRefs(work.ledger).length === 0) throw new Error('nothing was taken')
  await isRefused(served, disk, disk_free_bytes_min)
  await isUnready(served)
  await canBeRead(served, work, fraction)
  await canBeCanceled(served, work, fraction)
  // The last checkpoint may free pages for more, with which callers fill the disk once again.
  checkEvents(served, fillings + form.thefts + 1)
  hasNotFailed(served, form.thefts > 0)
  if (form.end === 'killed') {
    counts.kills++
    await served.end('SIGKILL')
  }
  await load.stop()
}

/** With so much beyond every request is taken. */
const roomy_bytes = 4 * mib

/** There is room again, where the form says so in another process, and the server serves again. */
async function makeRoom(trial: Trial): Promise<void> {
  const { start, disk, form, work, fraction } = trial
  const is_new = form.end === 'killed' || form.end === 'closed'
  const giveBack = form.takes_last ? await takeTheRest(disk) : async () => {}
  if (form.end === 'closed') {
    await canBeRead(trial.served, work, fraction, some)
    await trial.served.end('SIGTERM')
  }
  if (is_new) trial.served = await start()
  const { served } = trial
  if (form.takes_last) {
    await canBeRead(served, work, fraction, some)
    await makeOne(served, work)
    const [ref] = liveRefs(work.ledger) as [string]
    await cancel(work, ref, (target) => served.grpc.cancel(target))
    await giveBack()
  }
  // A start may find room that the process before had taken.
  if (!is_new) await isUnready(served)
  if (form.end === 'tasks') await cancelMost(served, work)
  else if (form.end === 'bulk') await cancelAll(served, work)
  else rmSync(join(disk.path, 'others'))
  await becomes('writes are taken again', () => makeOne(served, work))
  const readyz = `${served.server.at.operator}/readyz`
  await becomes('it is ready again', async () => (await fetchText(readyz)).status === 200)
  const isOver = (): boolean =>
    served.events().findLast((event) => /space/.test(event)) !== 'no_space'
  await becomes('space_back is logged', isOver)
}

/** Ends three of four tasks, which frees pages of the file. */
async function cancelMost({ grpc }: FullServer, work: FullWork): Promise<void> {
  const refs = liveRefs(work.ledger)
  const next = refs.slice(0, Math.ceil((3 * refs.length) / 4)).values()
  const cancelNext = async (): Promise<void> => {
    for (const ref of next) {
      await becomes('a cancel is taken', () => cancel(work, ref, (target) => grpc.cancel(target)))
    }
  }
  await Promise.all(Array.from({ length: 32 }, cancelNext))
}

async function cancelAll({ admin }: FullServer, work: FullWork): Promise<void> {
  const input = { action: 'cancel', filter: { conv_id }, id: 'all' } as const
  await becomes('all are canceled', async () => {
    const job = await admin.call('task.bulk', input).catch((error: { code?: string }) => {
      if (error.code !== 'no_space') throw error
    })
    return job?.is_done === true
  })
  for (const ref of liveRefs(work.ledger)) await cancel(work, ref, async () => ({ proc: 'ok' }))
}
