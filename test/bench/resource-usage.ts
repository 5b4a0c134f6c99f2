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

/** CPU seconds so far of this process and its children, all threads. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + childrenCpuSeconds()
}

const ticks_per_s = 100

/** Of children that have ended and of those that run; 0 where the system has no /proc. */
export function childrenCpuSeconds(): number {
  const ended = statFields('self').slice(15, 17)
  const running = childPids().flatMap((pid) => statFields(pid).slice(13, 17))
  return [...ended, ...running].reduce((sum, ticks) => sum + Number(ticks), 0) / ticks_per_s
}

/** Memory of this process and its children that maps no file. */
export function ownMemoryBytes(): number {
  return ['self', ...childPids()].reduce((sum, pid) => sum + anonymousBytes(pid), 0)
}

/** The largest `ownMemoryBytes` since the call, once the returned function is called. */
export function watchMemory(): () => number {
  let most = ownMemoryBytes()
  const timer = setInterval(() => {
    most = Math.max(most, ownMemoryBytes())
  }, memory_poll_ms)
  return () => {
    clearInterval(timer)
    return Math.max(most, ownMemoryBytes())
  }
}

const memory_poll_ms = 200

/** As proc(5) numbers them, less one; none of a process that is gone. */
export function statFields(of: string): readonly string[] {
  const stat = readProc(`${of}/stat`)
  const name_end = stat.lastIndexOf(')')
  return name_end === -1 ? [] : ['', '', ...stat.slice(name_end + 2).split(' ')]
}

function childPids(): string[] {
  return readProc(`self/task/${process.pid}/children`)
    .split(' ')
    .filter((pid) => pid !== '')
}

/** Empty where there is no such file. */
export function readProc(name: string): string {
  try {
    return readFileSync(`/proc/${name}`, 'utf8')
  } catch {
    return ''
  }
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

function anonymousBytes(pid = 'self'): number {
  const status = readProc(`${pid}/status`)
  const kib = ['RssAnon', 'RssShmem'].map(
    (name) => new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1],
  )
  return kib.reduce((sum, value) => sum + Number(value ?? 0) * 1024, 0)
}
