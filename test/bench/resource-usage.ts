/**
 * The resources that a side's process uses: memory, files and CPU, and when it becomes idle.
 */
import { readFileSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Footprint } from './statistics.ts'

/** Collects garbage first: the heap has live objects only, and each slot starts alike. */
export async function footprintOf(path: string, tasks: number): Promise<Footprint> {
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  return {
    rss_bytes: rss,
    anonymous_bytes: anonymousBytes(),
    heap_bytes: heapUsed,
    ...(await bytesOnDisk(path)),
    tasks,
  }
}

export async function bytesOnDisk(
  path: string,
): Promise<Pick<Footprint, 'file_bytes' | 'beside_bytes'>> {
  let beside_bytes = 0
  for (const file of await filesOf(path)) {
    if (file !== path && !file.endsWith('-lock')) beside_bytes += (await stat(file)).size
  }
  return { file_bytes: (await stat(path)).size, beside_bytes }
}

/** The data file and all files whose names start with its name. */
async function filesOf(path: string): Promise<string[]> {
  const folder = dirname(path)
  const names = await readdir(folder)
  return names.filter((name) => name.startsWith(basename(path))).map((name) => join(folder, name))
}

export async function removeFiles(path: string): Promise<void> {
  for (const file of await filesOf(path)) await rm(file, { force: true })
}

/** CPU seconds of this process so far, all threads. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const poll_ms = 25
const idle_wait_ms_max = 10_000
/** The share of one core below which a process counts as idle. */
const idle_share = 0.12

/**
 * Resolves when this process is idle, with the seconds it was not: work that it defers until after its
 * answers must not disturb the slot of the next side.
 */
export async function waitUntilIdle(): Promise<number> {
  const start_ms = performance.now()
  for (;;) {
    const before = { cpu_s: cpuSeconds(), ms: performance.now() }
    await new Promise((resolve) => setTimeout(resolve, poll_ms))
    const now_ms = performance.now()
    const share = (cpuSeconds() - before.cpu_s) / ((now_ms - before.ms) / 1_000)
    if (share < idle_share || now_ms - start_ms > idle_wait_ms_max) {
      return (before.ms - start_ms) / 1_000
    }
  }
}

function anonymousBytes(): number {
  try {
    const [, kib] = /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    return Number(kib ?? 0) * 1024
  } catch {
    return 0
  }
}
