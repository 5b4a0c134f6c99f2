/**
 * A kill in the sync of a commit of LMDB, a start, and then a power cut. What the start has read of
 * the data file the disk may still lack, so nothing may be written over that counts on it.
 *
 * A process kills itself right after a commit, and another one goes on. Each image is opened that a
 * power cut may leave while the disk lacks what the first one did last (support/disk/power-disk).
 */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openWithCommitLog } from './support/commit-log-setup.ts'
import { type Cut, type Fate, type Folder, newDisk } from './support/disk/power-disk.ts'
import { type DiskEvent, newDiskTrace } from './support/disk/power-trace.ts'
import { type BuiltChild, buildChild, type Edit } from './support/store-child.ts'
import { quickPaths } from './support/store-folder.ts'
import { canTrace } from './support/store-strace.ts'

const skip = !canTrace() && 'strace is missing or may not trace here'

/** The process kills itself behind this text, and the one that it writes for. */
const killing = (killed_in: string, file: string, from: string): Edit => ({
  file,
  from,
  to: `${from}
    if (process.env.KILLED_IN === ${killed_in}) {
      if (process.argv[1]?.includes('checkpoint-child')) process.kill(process.ppid, 'SIGKILL')
      process.kill(process.pid, 'SIGKILL')
    }`,
})
const mark = 'store/commit-log/log-mark.ts'
const put_mark = 'await writeAll(file, placed.bytes, placed.at)'
const edits: readonly Edit[] = [
  killing(
    "'making'",
    'store/lmdb/open.ts',
    'if (is_new) await (await openDatabase(path, { maxReaders })).close()',
  ),
  killing(
    "'checkpoint'",
    'store/commit-log/checkpoint.ts',
    'commitSlice(tree, own, slice, manifest)',
  ),
  killing("'tail'", mark, 'await writeAll(file, frames, place.at)'),
  killing('mark.state', mark, put_mark),
  {
    file: 'store/commit-log/segments.ts',
    from: 'const new_commit_log_bytes = 3 * 1024 * 1024',
    to: "const new_commit_log_bytes = process.env.KILLED_IN === '' ? Infinity : 3 * 1024 * 1024",
  },
]

const rows: [what: string, killed_in: string, env?: Readonly<Record<string, string>>][] = [
  ['the commit that counts frames as merged', 'checkpoint'],
  ['the record that requires the commit log', 'open'],
  ['the last commits behind the pages', 'tail'],
  ['the record that requires it no more', 'closed'],
  ['the making of the file, and then no room for a commit log', 'making', { KILLED_IN: '' }],
]

/** LMDB's handle of the meta page syncs each write; the handles of the others do not. */
const in_lmdb: readonly string[] = ['checkpoint', 'making']

describe('a kill in the sync of LMDB, a start and a power cut', { skip }, () => {
  const newPath = quickPaths('conveyor-killed-')
  let built: BuiltChild
  before(async () => {
    built = await buildChild('store-sync-child.ts', edits)
  })
  after(() => built.remove())

  for (const [what, killed_in, env] of rows) {
    it(`after ${what}`, async (t) => {
      const folder = join(built.folder, killed_in)
      mkdirSync(folder)
      const path = join(folder, 'db')
      const trace = newDiskTrace(folder)
      trace.start([built.script, path, '1'], { KILLED_IN: killed_in })
      const killed_at = (await trace.end(in_lmdb.includes(killed_in) ? 'db' : undefined)) - 1
      trace.start([built.script, path, '1', '1'], env)
      await trace.end()
      const { events } = trace
      const isLate = lateIn(events, killed_at)
      const disk = newDisk(events)
      const before = events.filter(({ ended }) => ended <= killed_at)
      const last = Math.max(...before.map(({ ended }) => ended))
      const cuts = disk.cuts.filter(({ line, loose }) => line >= last && loose.some(isLate))
      assert.ok(cuts.length > 0, 'the disk has all that the killed process did')
      const said = saidIn(events)
      assert.ok(
        said.some(({ n }) => n === 1),
        'the second process said nothing',
      )
      for (const cut of cuts) {
        const others: readonly Fate[] = cut.loose.map((event) => (isLate(event) ? 'gone' : 'there'))
        for (const fates of [cut.loose.map(() => 'gone' as const), others]) {
          const image = put(disk.folderAfter(cut, fates), newPath())
          const expected = said.filter(({ line }) => line <= cut.line).map(({ n }) => n)
          assert.deepEqual(await groupsIn(image, expected), expected, `cut at line ${cut.line}`)
        }
      }
      t.diagnostic(`${cuts.length} cuts`)
    })
  }
})

/** What the killed process did to the data file, which is loose, or to its name. */
function lateIn(events: readonly DiskEvent[], killed_at: number) {
  const named = events.find((event) => event.what === 'name' && event.name === 'db')
  const file = named?.what === 'name' ? named.file : undefined
  return (event: Cut['loose'][number]): boolean => event.file === file && event.ended <= killed_at
}

function saidIn(events: readonly DiskEvent[]): { readonly line: number; readonly n: number }[] {
  return events.flatMap((event) => {
    const [, n] = (event.what === 'said' && /^durable (\d+)/.exec(event.text)) || []
    return n === undefined ? [] : [{ line: event.began, n: Number(n) }]
  })
}

function put(image: Folder, path: string): string {
  for (const [name, bytes] of image) {
    writeFileSync(path + name.slice('db'.length), bytes, { mode: 0o600 })
  }
  return path
}

/** Which of these groups are there. */
async function groupsIn(path: string, groups: readonly number[]): Promise<number[]> {
  const tree = await openWithCommitLog(path)
  try {
    return groups.filter((n) => tree.get(`${n} 0`) !== undefined)
  } finally {
    await tree.close()
  }
}
