/**
 * The mark `log` of a data file (lmdb/marks): what the file is without its commit log. A copy is
 * whole without one, whatever its manifest says, and is no node's: both are of the file that was
 * copied.
 */
import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import type { Key } from '../../codec/keys.ts'
import { readMark, writeMark } from '../lmdb/marks.ts'
import { metasOf } from '../lmdb/page-sums.ts'
import { manifest_key } from './manifest.ts'
import { node_mark_key } from './node-mark.ts'

const copy = Buffer.from(JSON.stringify({ state: 'copy' }))
const own = Buffer.from(JSON.stringify({ state: 'own' }))

/** What a copy ignores of the file that was copied. */
export const own_keys: readonly Key[] = [manifest_key, node_mark_key]

/** `file` is a descriptor, open for writing. */
export function markAsCopy(file: number, page_bytes: number): void {
  put(file, page_bytes, copy)
}

/** On disk when it returns. */
export function markAsOwn(path: string): void {
  const file = openSync(path, 'r+')
  try {
    const meta = metasOf(file)?.[1]
    if (meta !== undefined) put(file, meta.page_bytes, own)
    fdatasyncSync(file)
  } finally {
    closeSync(file)
  }
}

export function isCopy(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const meta = metasOf(file)?.[1]
    return (
      meta !== undefined && readMark(file, meta.page_bytes, 'log')?.payload.equals(copy) === true
    )
  } finally {
    closeSync(file)
  }
}

function put(file: number, page_bytes: number, payload: Buffer): void {
  const { generation = 0 } = readMark(file, page_bytes, 'log') ?? {}
  writeMark(file, page_bytes, 'log', { generation: generation + 1, payload })
}
