/**
 * What must hold of a server whose disk is full: it refuses in time with the stated code, reads and
 * cancels go on, and probes and events report it. Each check throws what is wrong.
 */
import { shuffled } from '../fractions.ts'
import { becomes } from '../waits.ts'
import { plain as conv_id } from '../workload.ts'
import { pathOf } from '../workload-callers.ts'
import { cancel, type FullServer, type FullWork, readTasks } from './full-server.ts'
import { fetchText, must } from './harness.ts'
import { liveRefs } from './ledger.ts'
import { freeBytesOf, type SmallDisk } from './small-disk.ts'

/** What a write of callers takes, about. */
const text = 'x'.repeat(100_000)

/** Writes are refused while there is room. That over gRPC each has its status, callers see. */
export async function isRefused(
  { server, events }: FullServer,
  disk: SmallDisk,
  free_bytes_min: number,
): Promise<void> {
  const left = freeBytesOf(disk)
  const least = free_bytes_min / 4
  must(left >= least, `${left} bytes are left when writes are refused, not ${least}`)
  // Where a checkpoint has made room for a few more, no task is found.
  const modify = { type: 'modify', obj: 'task', conv_id, ref: 'missing', data: { text } }
  const body = JSON.stringify({ ops: [modify] })
  await becomes('HTTP answers 507', async () => {
    const answer = await fetchText(`${server.at.http}${pathOf(server.target, body)}`, body)
    const { request_proc } = JSON.parse(answer.text) as { readonly request_proc: string }
    const says = `${answer.status} ${request_proc}`
    must(says === '200 ok' || says === '507 no_space', `HTTP answers ${says}`)
    return answer.status === 507
  })
  must(events().includes('no_space'), 'no event says that the disk is full')
}

/** `/readyz` and the probe of the HTTP server refuse, and the probe that restarts the process does not. */
export async function isUnready({ server: { at } }: FullServer): Promise<void> {
  await becomes('it is not ready', async () => {
    const { status, text } = await fetchText(`${at.operator}/readyz`)
    if (status === 200) return false
    const { checks } = JSON.parse(text) as { readonly checks: Record<string, { ok: boolean }> }
    const failed = Object.keys(checks).filter((name) => checks[name]?.ok === false)
    if (`${status} ${failed}` === '503 commit,disk') return true
    // Where others have just had the last byte.
    must(`${status} ${failed}` === '503 commit', `/readyz answers ${status}: ${text}`)
    return false
  })
  const alive = await fetchText(`${at.operator}/healthz`)
  must(alive.status === 200, `/healthz answers ${alive.status}`)
  // A checkpoint may make room meanwhile, which callers then take.
  await becomes('/healthz of the HTTP server answers 503', async () => {
    return (await fetchText(`${at.http}/healthz`)).status === 503
  })
}

/** All that was answered is there, at each server; `some`: so many of the tasks. */
export async function canBeRead(
  { http, grpc, page, admin }: FullServer,
  work: FullWork,
  fraction: () => number,
  some = Number.POSITIVE_INFINITY,
): Promise<void> {
  const refs = shuffled(liveRefs(work.ledger), fraction).slice(0, some)
  const per_read = Math.min(reads_max, Math.ceil(read_bytes / work.bytes))
  for (let at = 0; at < refs.length; at += per_read) {
    const client = (at / per_read) % 2 === 0 ? http : grpc
    await readTasks(client, work, refs.slice(at, at + per_read))
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
    must(length > 0, `${name} finds no task`)
  }
  await page('frame', { view: 'overview' })
}

/** At once, which is less than a connection may have of answers that are not read yet. */
const [reads_max, read_bytes] = [100, 500_000]

/** One task at each server that can. */
export async function canBeCanceled(
  { grpc, page, admin }: FullServer,
  work: FullWork,
  fraction: () => number,
): Promise<void> {
  const [one, other, third] = shuffled(liveRefs(work.ledger), fraction) as [string, string, string]
  const obj_id = (await grpc.task({ conv_id, ref: third }))?.obj_id as string
  const taken = [
    await cancel(work, one, (target) => grpc.cancel(target)),
    await cancel(work, other, (target) => admin.call('task.cancel', { target })),
    await cancel(work, third, () => page('cancel', { conv_id, obj_id })),
  ]
  must(!taken.includes(false), `cancels are refused: ${taken}`)
}

/**
 * The disk was full so many times, and where it was for a second its end is logged before it is full
 * again.
 */
export function checkEvents({ events }: FullServer, times_max: number): void {
  const space = events().filter((event) => event === 'no_space' || event === 'space_back')
  const alternates = space.every(
    (event, at) => event === (at % 2 === 0 ? 'no_space' : 'space_back'),
  )
  const count = Math.ceil(space.length / 2)
  const is_right = alternates && count >= 1 && count <= times_max
  must(is_right, `full ${times_max} times at most, logged: ${space.join()}`)
}

const breakage: readonly string[] = ['store_failed', 'checkpoint_failed', 'bug']

/** Nothing has failed; where others have taken the last byte, LMDB may say that it was so. */
export function hasNotFailed({ events, said }: FullServer, is_taken: boolean): void {
  const failed = events().find((event) => breakage.includes(event))
  must(failed === undefined, `${failed}: ${said()}`)
  must(said() === '' || is_taken, said())
}
