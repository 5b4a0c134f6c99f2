/**
 * The limits that the system sets to a process: open files, and the memory of its control group. Of
 * the process that holds the file, or of this one. Without Linux nothing is known.
 */
import { readdir, readFile } from 'node:fs/promises'

export interface SystemLimits {
  readonly files_max?: number
  /** How many the process that holds the file has open. */
  readonly files_open?: number
  readonly memory_bytes_max?: number
}

export async function systemLimits(pid: number | undefined): Promise<SystemLimits> {
  const process = `/proc/${pid ?? 'self'}`
  const [limits, group] = await Promise.all([
    systemText(`${process}/limits`),
    systemText(`${process}/cgroup`),
  ])
  const [, soft, hard] = /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(limits) ?? []
  // Node raises its own limit to the hard one at the start.
  const files_max = Number(pid === undefined ? hard : soft)
  const open = pid === undefined ? [] : await readdir(`${process}/fd`).catch(() => [])
  const [, path = '/'] = /^0::(\/.*)$/m.exec(group) ?? []
  const found = await Promise.all(
    [`/sys/fs/cgroup${path}/memory.max`, '/sys/fs/cgroup/memory.max', v1_path].map(systemText),
  )
  const memory = found.map((text) => Number.parseInt(text, 10)).find((one) => one > 0)
  return {
    ...(Number.isFinite(files_max) ? { files_max } : {}),
    ...(open.length > 0 ? { files_open: open.length } : {}),
    ...(memory === undefined || memory > no_limit_bytes ? {} : { memory_bytes_max: memory }),
  }
}

const v1_path = '/sys/fs/cgroup/memory/memory.limit_in_bytes'
/** Control groups v1 report no limit as a number near 2⁶³. */
const no_limit_bytes = 2 ** 50

async function systemText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
