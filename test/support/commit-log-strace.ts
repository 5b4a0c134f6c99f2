/**
 * The system calls of a process with a commit log, in order: was a group on disk before its
 * acknowledgement, by no more than one sync?
 *
 * A group is one frame, in one write of whole blocks to a segment; the write syncs itself, or a
 * sync call follows. Preallocation, and the block that tries O_DIRECT, do not count. A segment may
 * be overwritten only after a whole commit of LMDB behind its last frame. That this commit counts
 * the segment as merged is not visible here; the power cut tests cover it.
 */
import {
  type Call,
  commitsOf,
  handleOf,
  isSync,
  isWrite,
  offsetOf,
  syncedHandles,
} from './store-strace.ts'

const zeros_begin = `"${'\\0'.repeat(8)}`
/** The eight bytes a segment begins with: "CVLF" and a checksum, which tell its first frame. */
const first_frame = /"((?:\\(?:[0-7]{1,3}|.)|[^"\\]){1,8})/

/**
 * One sentence for each reply that was not preceded, since the reply before, by exactly one frame
 * that was safe, and for each other thing that was done in the wrong order. What was written before
 * the line `from` was for nobody who waits. A trace without a reply is a mistake itself.
 */
export function commitLogOrderMistakes(
  calls: readonly Call[],
  path: string,
  isReply: (call: Call) => boolean,
  from = 0,
): string[] {
  const replies = calls.filter(isReply)
  if (replies.length === 0) return ['there is no reply in the trace']
  const frames = [0, 1].flatMap((n) => framesOf(calls, `${path}-log-${n}`))
  const syncs = calls.filter((call) => isSync(call) && call.args.includes(`<${path}-log-`))
  const mistakes: string[] = []
  // The first frame opens the commit log, and nobody waits for it.
  const [opening, second] = frames.toSorted((one, next) => one.call.began - next.call.began)
  let since = Math.max(from, opening?.call.ended ?? 0)
  if (opening !== undefined && opening.safe < (second?.call.began ?? 0)) {
    since = Math.max(since, opening.safe)
  }
  for (const [index, reply] of replies.entries()) {
    const isOwn = ({ ended }: Call): boolean => ended > since && ended < reply.began
    const own = frames.filter(({ call }) => isOwn(call))
    const mistake = mistakeOf(own, syncs.filter(isOwn).length, reply)
    if (mistake !== undefined) mistakes.push(`reply ${index}: ${mistake}`)
    since = reply.began
  }
  return [...mistakes, ...overwritten(calls, path, frames), ...treeMistakes(calls, path)]
}

interface Frame {
  readonly call: Call
  /** Whether it is the first of a segment: of a round, for a block is written again and again. */
  readonly is_first: boolean
  /** When it was safe; never where no sync covered it. */
  readonly safe: number
  readonly by_handle: boolean
}

function framesOf(calls: readonly Call[], path: string): Frame[] {
  const synced = syncedHandles(calls, path)
  const onFile = calls.filter((call) => call.args.includes(`<${path}>`))
  let first: string | undefined
  return onFile
    .filter((call) => isWrite(call) && !call.args.includes(zeros_begin))
    .map((call) => {
      const by_handle = synced.has(handleOf(call))
      const sync = onFile.find((other) => isSync(other) && other.began > call.ended)
      const safe = by_handle ? call.ended : (sync?.ended ?? Infinity)
      const begins = offsetOf(call) === 0 ? first_frame.exec(call.args)?.[1] : first
      const is_first = begins !== first
      first = begins
      return { call, is_first, safe, by_handle }
    })
}

function mistakeOf(own: readonly Frame[], syncs: number, reply: Call): string | undefined {
  if (own.length === 0) return 'no frame was written'
  if (own.length > 1) return `${own.length} frames were written`
  const [{ safe, by_handle }] = own as [Frame]
  if (safe >= reply.began) return 'its frame was not synced'
  const needed = by_handle ? 0 : 1
  return syncs > needed ? `${syncs - needed} syncs more than it needs` : undefined
}

function overwritten(calls: readonly Call[], path: string, frames: readonly Frame[]): string[] {
  const commits = commitsOf(calls, path)
  const mistakes: string[] = []
  for (const { call, is_first } of frames) {
    if (!is_first) continue
    const file = fileOf(call)
    const before = frames.filter((one) => fileOf(one.call) === file && one.call.ended < call.began)
    if (before.length === 0) continue
    const last = Math.max(...before.map((one) => one.call.ended))
    const is_merged = commits.some(
      ({ began, ended, mistake }) => mistake === undefined && began > last && ended < call.began,
    )
    if (!is_merged) mistakes.push(`${file} was written over before it was in the tree`)
  }
  return mistakes
}

function fileOf(call: Call): string {
  return /<([^>]*)>/.exec(call.args)?.[1] ?? ''
}

function treeMistakes(calls: readonly Call[], path: string): string[] {
  return commitsOf(calls, path).flatMap(({ mistake }) =>
    mistake === undefined ? [] : [`the tree: ${mistake}`],
  )
}

/** How often a segment was begun again. */
export function roundsOf(calls: readonly Call[], path: string): number {
  const frames = [0, 1].flatMap((n) => framesOf(calls, `${path}-log-${n}`))
  return frames.filter(({ is_first }) => is_first).length - 2
}
