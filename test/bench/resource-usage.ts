/**
 * What a side's process looks like from inside: its memory, its files, and whether it still works.
 */
import { readFileSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Footprint } from './statistics.ts'

/** Collects garbage first: the heap is what lives, and the next slot starts even. */
export async function footprintOf(path: string, tasks: number): Promise<Footprint> {
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  let beside_bytes = 0
  for (const file of await filesOf(path)) {
    if (file !== path && !file.endsWith('-lock')) beside_bytes += (await stat(file)).size
  }
  return {
    rss_bytes: rss,
    anonymous_bytes: anonymousBytes(),
    heap_bytes: heapUsed,
    file_bytes: (await stat(path)).size,
    beside_bytes,
    tasks,
  }
}

/** The data file and all that is named after it. */
async function filesOf(path: string): Promise<string[]> {
  const folder = dirname(path)
  const names = await readdir(folder)
  return names.filter((name) => name.startsWith(basename(path))).map((name) => join(folder, name))
}

export async function removeFiles(path: string): Promise<void> {
  for (const file of await filesOf(path)) await rm(file, { force: true })
}

/** Processor seconds of this process so far, all its threads. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const look_ms = 25
const settle_ms_max = 10_000
/** Of one core: a process that uses less has nothing more to do. */
const idle_share = 0.12

/**
 * Resolves when this process is idle: what it put off until after its answers must not fall on its
 * neighbour's slot. Answers how long it was not idle.
 */
export async function waitUntilIdle(): Promise<number> {
  const start_ms = performance.now()
  for (;;) {
    const before = { cpu_s: cpuSeconds(), ms: performance.now() }
    await new Promise((resolve) => setTimeout(resolve, look_ms))
    const now_ms = performance.now()
    const share = (cpuSeconds() - before.cpu_s) / ((now_ms - before.ms) / 1_000)
    if (share < idle_share || now_ms - start_ms > settle_ms_max) {
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
