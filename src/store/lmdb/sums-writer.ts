/**
 * Keeps the checksums of pages (page-sums) up to date: a commit writes those of all pages that
 * earlier commits wrote, the mark after it those of its own. So a page is read once for its sum,
 * however many commits of a checkpoint wrote it.
 */
import { closeSync, openSync } from 'node:fs'
import { type Key, keysOfType, pageSumKey } from '../../codec/keys.ts'
import { damageFault } from './damage.ts'
import type { LmdbWriter } from './lmdb-tree.ts'
import { readMark, writeMark } from './marks.ts'
import {
  block_sums,
  coveredTxn,
  damaged_meta,
  damaged_sums,
  damagedPage,
  encodePagesMark,
  isDamagedPage,
  metasOf,
  sealed,
  storedEntries,
  summed,
  sumOf,
  sumsIn,
  unsealed,
  walkedPages,
} from './page-sums.ts'
import { changedPages, type Meta } from './pages.ts'

export interface SumsWriter {
  /** Before a commit. Throws `store_failed` for a page that differs from what was written. */
  prepare(): void
  /** During the commit. */
  put(writer: LmdbWriter): void
  /** After the commit; never throws. */
  mark(): void
}

interface Sums {
  /** The last transaction whose pages are all in `sums`. */
  txn: number
  /** By page. */
  sums: Uint32Array
  /** The blocks that differ from those in the file. */
  readonly changed: Set<number>
}

const { from, to } = keysOfType('page_sum')

export function newSumsWriter(path: string): SumsWriter {
  let known: Sums | undefined

  function bringUp(file: number, meta: Meta): void {
    const found = known ?? storedSums(file, meta)
    const read = walkedPages(file, meta)
    for (const changed of changedPages(read, meta, found.txn, summed)) {
      const { page, fixed } = changed
      if (fixed === undefined) throw damagedPage(changed)
      if (page >= found.sums.length) found.sums = withRoom(found.sums, page)
      const sum = sumOf(fixed)
      if (found.sums[page] === sum) continue
      found.sums[page] = sum
      found.changed.add(Math.floor(page / block_sums))
    }
    found.txn = meta.txn
    known = found
  }

  function storedSums(file: number, meta: Meta): Sums {
    const entries = storedEntries(file, meta)
    const txn = coveredTxn(entries)
    if (txn === 'damaged') throw damaged_sums
    let sums: Uint32Array = new Uint32Array(block_sums)
    for (const { key, value } of entries.range(pageSumKey(0), to, false)) {
      const block = unsealed(key, value)
      if (block === undefined) throw damaged_sums
      const at = Buffer.from(key, 'latin1').readUInt32BE(from.length) * block_sums
      if (at >= sums.length) sums = withRoom(sums, at)
      sums.set(sumsIn(block), at)
    }
    return { txn, sums, changed: new Set() }
  }

  return {
    prepare() {
      const file = openSync(path, 'r')
      try {
        const metas = metasOf(file)
        if (metas === undefined) throw damaged_meta
        bringUp(file, metas[1])
      } catch (error) {
        throw isDamagedPage(error) ? damageFault(path, error) : error
      } finally {
        closeSync(file)
      }
    },
    put(writer) {
      if (known === undefined) return
      const { txn, sums, changed } = known
      const put = (key: Key, value: Uint8Array): void => writer.put(key, sealed(key, value))
      for (const block of changed) {
        const at = block * block_sums
        put(pageSumKey(block), bytesOf(sums.subarray(at, at + block_sums)))
      }
      const head = Buffer.alloc(8)
      head.writeBigUInt64BE(BigInt(txn))
      put(pageSumKey(), head)
    },
    mark() {
      known?.changed.clear()
      let file: number | undefined
      try {
        file = openSync(path, 'r+')
        const meta = metasOf(file)?.[1]
        if (meta === undefined) return
        const page_sums: number[] = []
        for (const { fixed } of changedPages(walkedPages(file, meta), meta, meta.txn - 1, summed)) {
          if (fixed === undefined) return
          page_sums.push(sumOf(fixed))
        }
        const { generation = 0 } = readMark(file, meta.page_bytes, 'pages') ?? {}
        const payload = encodePagesMark(meta, known?.txn ?? -1, page_sums)
        writeMark(file, meta.page_bytes, 'pages', { generation: generation + 1, payload })
      } catch {
        // Without the mark the last commit's pages are only known to be well-formed.
      } finally {
        if (file !== undefined) closeSync(file)
      }
    },
  }
}

function withRoom(sums: Uint32Array, page: number): Uint32Array {
  const larger = new Uint32Array(block_sums * Math.ceil((1.5 * (page + block_sums)) / block_sums))
  larger.set(sums)
  return larger
}

function bytesOf(sums: Uint32Array): Buffer {
  const out = Buffer.alloc(4 * sums.length)
  for (const [n, sum] of sums.entries()) out.writeUInt32LE(sum, 4 * n)
  return out
}
