/**
 * What must hold of a server whose disk is full: it refuses in time and in the stated words, its
 * reads and cancels go on, and probes and events say it. All throw what is wrong.
 */
import { shuffled } from '../fractions.ts'
import { becomes } from '../waits.ts'
import { plain as conv_id } from '../workload.ts'
import type { FullServer } from './full-harness.ts'
import { cancel, type Knowledge, liveRefs, readTasks } from './full-knowledge.ts'
import { freeBytesOf, type SmallDisk } from './small-disk.ts'

/** What a write of callers takes, about. */
const text = 'x'.repeat(100_000)

/** Writes are refused while there is room. That over gRPC each has its status, callers see. */
export async function isRefused(
  served: FullServer,
  disk: SmallDisk,
  free_bytes_min: number,
): Promise<void> {
  const left = freeBytesOf(disk)
  const least = free_bytes_min / 4
  if (left < least) throw new Error(`${left} bytes are left when writes are refused, not ${least}`)
  // Where a checkpoint has made room for a few more, nobody is found.
  const modify = { type: 'modify', obj: 'task', conv_id, ref: 'nobody', data: { text } }
  await becomes('HTTP answers 507', async () => {
    const answer = await served.post([modify])
    if (answer !== '200 ok' && answer !== '507 no_space') throw new Error(`HTTP answers ${answer}`)
    return answer === '507 no_space'
  })
  if (!served.events().includes('no_space')) throw new Error('no event tells that the disk is full')
}

/** A probe that sends requests is told; one that restarts the process is not. */
export async function isUnready({ get }: FullServer): Promise<void> {
  await becomes('it is not ready', async () => {
    const { status, text } = await get('/readyz')
    if (status === 200) return false
    const { checks } = JSON.parse(text) as { readonly checks: Record<string, { ok: boolean }> }
    const failed = Object.keys(checks).filter((name) => checks[name]?.ok === false)
    if (`${status} ${failed}` === '503 commit,disk') return true
    // Where others have just had the last byte.
    if (`${status} ${failed}` === '503 commit') return false
    throw new Error(`/readyz answers ${status}: ${text}`)
  })
  const alive = await get('/healthz')
  if (alive.status !== 200) throw new Error(`/healthz answers ${alive.status}`)
  // A checkpoint may make room meanwhile, which callers then take.
  await becomes('/healthz of the HTTP server answers 503', async () => {
    return (await get('/healthz', 'http')).status === 503
  })
}

/** All that was answered is there, at each server; `some`: so many of the tasks. */
export async function canBeRead(
  { http, grpc, page, admin }: FullServer,
  knowledge: Knowledge,
  fraction: () => number,
  some = Number.POSITIVE_INFINITY,
): Promise<void> {
  const refs = shuffled(liveRefs(knowledge), fraction).slice(0, some)
  const per_read = Math.min(reads_max, Math.ceil(read_bytes / knowledge.bytes))
  for (let at = 0; at < refs.length; at += per_read) {
    const client = (at / per_read) % 2 === 0 ? http : grpc
    await readTasks(client, knowledge, refs.slice(at, at + per_read))
  }
  const filter = { conv_id, limit: 10 }
  const ref = refs[0] as string
  const lists = {
    ListTasks: (await grpc.list(filter)).tasks,
    'the page': (await page('tasks', filter)).rows,
    'the command line': (await admin.call('task.list', filter)).tasks,
    'the search of the page': (await page('find', { text: ref, conv_id })).rows,
  }
  for (const [name, { length }] of Object.entries(lists)) {
    if (length === 0) throw new Error(`${name} finds no task`)
  }
  await page('frame', { view: 'overview' })
}

/** At once, which is less than a connection may have of answers that are not read yet. */
const [reads_max, read_bytes] = [100, 500_000]

/** One task at each server that can. */
export async function canBeCanceled(
  { grpc, page, admin }: FullServer,
  knowledge: Knowledge,
  fraction: () => number,
): Promise<void> {
  const [one, other, third] = shuffled(liveRefs(knowledge), fraction) as [string, string, string]
  const obj_id = (await grpc.task({ conv_id, ref: third }))?.obj_id as string
  const are_canceled = [
    await cancel(knowledge, one, async (target) => (await grpc.cancel(target)).proc),
    await cancel(
      knowledge,
      other,
      async (target) => (await admin.call('task.cancel', { target })).proc,
    ),
    await cancel(knowledge, third, async () => (await page('cancel', { conv_id, obj_id })).proc),
  ]
  if (are_canceled.includes(false)) throw new Error(`cancels are refused: ${are_canceled}`)
}

/**
 * The disk was full so many times, and where it was for a second its end is told before it is full
 * again.
 */
export function checkEvents({ events }: FullServer, times_max: number): void {
  const space = events().filter((event) => event === 'no_space' || event === 'space_back')
  const alternates = space.every(
    (event, at) => event === (at % 2 === 0 ? 'no_space' : 'space_back'),
  )
  const count = Math.ceil(space.length / 2)
  if (alternates && count >= 1 && count <= times_max) return
  throw new Error(`full ${times_max} times at most, told: ${space.join()}`)
}

const breakage: readonly string[] = ['store_failed', 'checkpoint_failed', 'bug']

/** Nothing has failed; where others have taken the last byte, LMDB may say that it was so. */
export function hasNotFailed({ events, said }: FullServer, is_taken: boolean): void {
  const failed = events().find((event) => breakage.includes(event))
  if (failed !== undefined) throw new Error(`${failed}: ${said()}`)
  if (said() !== '' && !is_taken) throw new Error(said())
}
