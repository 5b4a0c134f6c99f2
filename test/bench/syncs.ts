/**
 * How often a commit waits for the disk: creates of one caller under strace, each a commit of its
 * own, and the calls that sync counted. A write to a file that was opened to sync its writes is
 * such a call. What goes on behind the answers, as the tree's writing under the log, counts too.
 */
import { join } from 'node:path'
import { type Call, canTrace, isWriteOf, runTraced } from '../support/store-strace.ts'
import type { Place } from './place.ts'

export interface SyncsLine {
  readonly kind: 'syncs'
  readonly side: 'plain' | 'log' | 'sqlite'
  readonly commits: number
  readonly syncs_per_commit: number
  readonly writes_per_commit: number
}

const commits = 200
const writes = new Set(['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2'])
const syncs = new Set(['fsync', 'fdatasync', 'msync'])

export async function* countSyncs(place: Place, has_sqlite: boolean): AsyncGenerator<SyncsLine> {
  if (!canTrace()) return
  for (const side of ['plain', 'log', ...(has_sqlite ? (['sqlite'] as const) : [])] as const) {
    const path = place.newPath()
    const args = [place.child('sync-run'), side, path, String(commits)]
    const { calls, code, stderr } = await runTraced(args, {
      log: join(place.folder, `strace-${side}`),
    })
    if (code !== 0) throw new Error(`sync-run ${side}: ${stderr}`)
    const counted = between(calls).filter(({ args }) => args.includes(`<${path}`))
    const synced = syncedFiles(calls)
    const isSync = ({ name, args }: Call): boolean =>
      syncs.has(name) || (writes.has(name) && synced.has(handleOf(args)))
    yield {
      kind: 'syncs',
      side,
      commits,
      syncs_per_commit: counted.filter(isSync).length / commits,
      writes_per_commit: counted.filter(({ name }) => writes.has(name)).length / commits,
    }
  }
}

function between(calls: readonly Call[]): readonly Call[] {
  const at = (mark: string): number => calls.findIndex((call) => isWriteOf(call, `"${mark}\\n"`))
  return calls.slice(at('begin') + 1, at('end'))
}

/** File descriptors that were opened so that each write is synced. */
function syncedFiles(calls: readonly Call[]): ReadonlySet<string> {
  const opened = calls.filter(({ name, args }) => name === 'openat' && /O_D?SYNC/.test(args))
  return new Set(opened.map(({ result }) => handleOf(result)))
}

/** `7` of `7</tmp/file>`. */
function handleOf(text: string): string {
  return /^\d+/.exec(text)?.[0] ?? ''
}
