/**
 * The script of the scan thread: compares all pages of a data file with their checksums and reports
 * the first damaged one.
 */
import { openSync, readSync } from 'node:fs'
import { totalmem } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { lowerPriority } from '../commit-log/thread-priority.ts'
import {
  checkedPages,
  type DamagedPage,
  damagedPages,
  isDamagedPage,
  metasOf,
} from './page-sums.ts'

export interface ScanJob {
  readonly path: string
  readonly bytes: number
}

export interface ScanResult {
  readonly damaged?: DamagedPage
  readonly error?: string
}

const read_bytes = 1024 * 1024

/** In file order, which is faster than tree order: the comparison then reads from memory. */
function readAhead(file: number, bytes: number): void {
  if (bytes > totalmem() / 2) return
  const into = Buffer.alloc(read_bytes)
  for (let at = 0; at < bytes; at += read_bytes) readSync(file, into, 0, read_bytes, at)
}

function firstDamage(file: number): DamagedPage | undefined {
  try {
    const checked = checkedPages(file)
    for (const damaged of damagedPages(checked)) {
      if (damaged === undefined) continue
      // A concurrent commit may have reused pages.
      if (metasOf(file)?.[1].txn === checked.meta.txn) return damaged
      return firstDamage(file)
    }
    return undefined
  } catch (error) {
    if (isDamagedPage(error)) return error
    throw error
  }
}

function scan({ path, bytes }: ScanJob): ScanResult {
  try {
    const file = openSync(path, 'r')
    readAhead(file, bytes)
    const damaged = firstDamage(file)
    return damaged === undefined ? {} : { damaged }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

const port = parentPort
if (port !== null) {
  lowerPriority()
  port.postMessage(scan(workerData as ScanJob))
}
