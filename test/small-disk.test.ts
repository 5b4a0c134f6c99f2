/**
 * The store on a disk that says it is full in the middle of its work, whether it is or not: what was
 * acknowledged is there, and commits go on once there is space. `npm run proof:full` fills the disk
 * of a server.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import type { FullDisk } from './support/disk/full-disk-child.ts'
import { mountDisk, never_looks } from './support/disk/small-disk.ts'
import { buildChild, type Edit } from './support/store-child.ts'

/** Writes of frames that are on disk and yet answered with a full disk, as a late sync may be. */
const written_and_full: Edit = {
  file: 'store/commit-log/segments.ts',
  from: 'const write_ms =',
  to: `const nth = to > from + 1 ? (globalThis.nth = (globalThis.nth ?? 0) + 1) : 0
      if (nth > 9 && nth < 19) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      const write_ms =`,
}

/** [what, is the disk small, edits, bytes of a commit] */
const full_disks: [string, boolean, readonly Edit[], number][] = [
  ['that fills between two looks, with small commits', true, never_looks, 4_000],
  ['that fills between two looks, with large commits', true, never_looks, 100_000],
  ['that takes a commit and says it is full', false, [written_and_full], 4_000],
]
for (const [what, is_small, edits, value_bytes] of full_disks) {
  it(`a disk ${what}`, { timeout: 120_000 }, async (t) => {
    const child = await buildChild('disk/full-disk-child.ts', edits)
    const disk = is_small ? mountDisk('tmpfs', 24) : { path: child.folder, remove: () => {} }
    try {
      if (disk === undefined) return t.skip('this user may not mount a small disk here')
      writeFileSync(join(disk.path, 'others'), Buffer.alloc(8 << 20, 1))
      const paths = [join(disk.path, 'tasks.lmdb'), join(child.folder, 'copy.lmdb')]
      const args = [child.script, ...paths, String(value_bytes)]
      const run = spawnSync(process.execPath, args, { encoding: 'utf8' })
      assert.equal(run.status, 0, run.stderr)
      const { codes, events, copied, closed } = JSON.parse(run.stdout) as FullDisk
      assert.deepEqual([...new Set(codes)], ['ok', 'no_space'])
      assert.deepEqual(codes.slice(-51), Array(51).fill('ok'))
      assert.equal(events.filter((event) => event === 'no_space').length, 1)
      assert.ok(!events.includes('store_failed'))
      assert.equal(copied[1], copied[0])
      assert.equal(closed[1], closed[0])
    } finally {
      disk?.remove()
      await child.remove()
    }
  })
}
