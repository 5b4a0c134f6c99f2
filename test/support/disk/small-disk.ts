/**
 * A disk of a few megabytes of its own, which a test can fill.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, statfsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { tempFolder } from '../package-folder.ts'
import type { Edit } from '../store-child.ts'

export interface SmallDisk {
  readonly path: string
  remove(): void
}

/** Undefined where this user may mount none. */
export function mountDisk(kind: 'tmpfs' | 'ext4', megabytes: number): SmallDisk | undefined {
  const folder = tempFolder()
  const path = join(folder.path, 'disk')
  const image = join(folder.path, 'image')
  mkdirSync(path)
  const commands =
    kind === 'tmpfs'
      ? [['mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path]]
      : [
          ['truncate', '-s', `${megabytes}M`, image],
          ['mkfs.ext4', '-q', '-F', image],
          ['mount', '-o', 'loop', image, path],
        ]
  for (const [command = '', ...args] of commands) {
    if (spawnSync(command, args).status === 0) continue
    folder.remove()
    return undefined
  }
  return {
    path,
    remove() {
      spawnSync('umount', ['-l', path])
      folder.remove()
    },
  }
}

export function freeBytesOf({ path }: SmallDisk): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** Others take all that is left, while this process goes on; the answer gives it back. */
export async function takeTheRest({ path }: SmallDisk): Promise<() => Promise<void>> {
  const taken = join(path, 'taken')
  const file = await open(taken, 'w')
  for (const bytes of [1024 * 1024, 4096]) {
    const block = Buffer.alloc(bytes, 1)
    try {
      while ((await file.write(block)).bytesWritten === bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
  await file.close()
  return () => rm(taken)
}

/** A store that never looks how much is free, as if others took it in the moment after each look. */
export const never_looks: readonly Edit[] = [
  {
    file: 'store/lmdb/disk-space.ts',
    from: 'const left = tree.freeBytes() - 2 * load.large_bytes',
    to: 'const left = 1e15',
  },
  { file: 'store/commit-log/tree.ts', from: 'return tree.freeBytes() >=', to: 'return 1e15 >=' },
  {
    file: 'store/commit-log/tree.ts',
    from: 'Math.max(free.bytes() + spareBytes(tree) - reserve_bytes, debt_min_bytes)',
    to: '1e15',
  },
]
