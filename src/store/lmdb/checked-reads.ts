/**
 * Reads of a large file while a thread compares all of it with its checksums: directly from its
 * pages, each checked when read. So the opening does not wait, and LMDB reads no damaged page.
 */
import { closeSync, fstatSync, openSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { fault } from '../../core/faults.ts'
import type { Tree } from '../tree.ts'
import { damageFault } from './damage.ts'
import { type CheckedPages, checkedPages, isDamagedPage } from './page-sums.ts'
import { scanScript } from './scan-script.ts'
import type { ScanJob, ScanResult } from './scan-worker.ts'

export interface CheckedReads extends Pick<Tree, 'get' | 'range'> {
  refresh(): void
  readonly has_last_sums: boolean
  /** Rejects with `store_failed` and a sentence for a damaged page. */
  readonly verified: Promise<void>
  close(): Promise<void>
}

/** Throws a `DamagedPage`. */
export function newCheckedReads(path: string): CheckedReads {
  const file = openSync(path, 'r')
  let pages: CheckedPages
  try {
    pages = checkedPages(file)
  } catch (error) {
    closeSync(file)
    throw error
  }
  const { script, options } = scanScript()
  const workerData: ScanJob = { path, bytes: fstatSync(file).size }
  const worker = new Worker(script, { ...options, workerData })
  const verified = new Promise<void>((resolve, reject) => {
    worker.on('message', ({ damaged, error }: ScanResult) => {
      if (damaged !== undefined) reject(damageFault(path, damaged))
      else if (error !== undefined) reject(fault('store_failed', `${path}: ${error}`))
      else resolve()
    })
    worker.on('error', reject)
    worker.on('exit', () => reject(fault('shutting_down')))
  })
  verified.catch(() => {})

  function failed(error: unknown): unknown {
    return isDamagedPage(error) ? damageFault(path, error) : error
  }

  return {
    get(key) {
      try {
        return pages.entries.get(key)
      } catch (error) {
        throw failed(error)
      }
    },
    *range(from, to, reverse) {
      try {
        yield* pages.entries.range(from, to, reverse)
      } catch (error) {
        throw failed(error)
      }
    },
    refresh() {
      try {
        pages = checkedPages(file)
      } catch (error) {
        throw failed(error)
      }
    },
    has_last_sums: pages.is_marked,
    verified,
    async close() {
      closeSync(file)
      await worker.terminate()
    },
  }
}
