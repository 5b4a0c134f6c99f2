/**
 * The folder that images are put into, one after another: most differ from the one before in few
 * blocks, so only those are digested and written.
 */
import { createHash } from 'node:crypto'
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Folder } from './power-disk.ts'

/** By name, a digest of what a file holds. */
export type Digests = ReadonlyMap<string, string>

export interface ImageFolder {
  /** The image becomes the one that `put` writes. */
  take(image: Folder): Digests
  /** Writes what the folder lacks of it. */
  put(): void
  /** This file in the folder, or all, may have been changed; the next `put` writes it. */
  forget(name?: string): void
}

interface Known {
  bytes: Buffer
  /** One beside the other. */
  readonly digests: Buffer[]
  digest: string
  /** The blocks that are not on the disk, or all. */
  unwritten: Set<number> | 'all'
}

const block_bytes = 4096

export function newImageFolder(folder: string): ImageFolder {
  const known = new Map<string, Known>()
  let gone = new Set<string>()
  let is_forgotten = true

  function take(name: string, bytes: Buffer): string {
    const file = known.get(name) ?? {
      ...{ bytes: Buffer.alloc(0), digests: [], digest: '', unwritten: 'all' as const },
    }
    known.set(name, file)
    if (file.digest !== '' && file.bytes.equals(bytes)) return file.digest
    for (let at = 0, block = 0; at < bytes.length; at += block_bytes, block++) {
      const end = Math.min(at + block_bytes, bytes.length)
      const is_same =
        end <= file.bytes.length &&
        (end - at === block_bytes || end === file.bytes.length) &&
        bytes.compare(file.bytes, at, end, at, end) === 0
      if (is_same) continue
      file.digests[block] = createHash('sha1').update(bytes.subarray(at, end)).digest()
      if (file.unwritten !== 'all') file.unwritten.add(block)
    }
    file.digests.length = Math.ceil(bytes.length / block_bytes)
    // The bytes of an image may be changed by the next one.
    if (file.bytes.length !== bytes.length) file.bytes = Buffer.allocUnsafeSlow(bytes.length)
    bytes.copy(file.bytes)
    const all = createHash('sha1').update(`${bytes.length} `)
    file.digest = all.update(Buffer.concat(file.digests)).digest('base64')
    return file.digest
  }

  function write(name: string, file: Known): void {
    if (file.unwritten !== 'all' && file.unwritten.size === 0) return
    const handle = openSync(join(folder, name), file.unwritten === 'all' ? 'w' : 'r+', 0o600)
    try {
      if (file.unwritten === 'all') writeSync(handle, file.bytes, 0, file.bytes.length, 0)
      else {
        for (const block of file.unwritten) {
          const at = block * block_bytes
          if (at >= file.bytes.length) continue
          writeSync(handle, file.bytes, at, Math.min(block_bytes, file.bytes.length - at), at)
        }
        ftruncateSync(handle, file.bytes.length)
      }
    } finally {
      closeSync(handle)
    }
    file.unwritten = new Set()
  }

  return {
    take(image) {
      for (const name of known.keys()) {
        if (image.has(name)) continue
        known.delete(name)
        gone.add(name)
      }
      return new Map(
        [...image.keys()].toSorted().map((name) => [name, take(name, image.get(name) as Buffer)]),
      )
    },
    put() {
      if (is_forgotten) {
        rmSync(folder, { recursive: true, force: true })
        mkdirSync(folder, { recursive: true })
        for (const file of known.values()) file.unwritten = 'all'
      }
      is_forgotten = false
      for (const name of gone) rmSync(join(folder, name), { force: true })
      gone = new Set()
      for (const [name, file] of known) write(name, file)
    },
    forget(name) {
      const file = name === undefined ? undefined : known.get(name)
      if (file !== undefined) file.unwritten = 'all'
      else if (name !== undefined) gone.add(name)
      else is_forgotten = true
    },
  }
}
