/**
 * A disk of a few megabytes of its own, which a test can fill.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { tempFolder } from './package-folder.ts'

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
