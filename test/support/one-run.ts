/**
 * One run of the tests (bin/test.ts), of which nothing stays behind however it ends: all that it
 * writes is in two folders of its own, and all that it starts is in one session.
 *
 * What is broken off is asked to end first, so that servers of PostgreSQL free their shared memory.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { quick_place } from './store-folder.ts'

const end_ms_max = 10_000
const look_ms = 50

export interface OneRun {
  /** On a disk, and in memory where there is such a place. */
  readonly folder: string
  readonly quick_folder: string
  /** Runs node to its end; answers its exit code, or 1 where something of it went on. */
  node(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number>
  /** Removes the folders. */
  end(): void
}

export function newRun(): OneRun {
  const [folder = '', quick_folder = ''] = [tmpdir(), quick_place].map((place) => {
    const path = mkdtempSync(join(place, 'conveyor-'))
    // Other users' servers have folders in it, as in the temp folder of the system.
    chmodSync(path, 0o1777)
    return path
  })
  const end = (): void => {
    for (const path of [folder, quick_folder]) {
      rmSync(path, { recursive: true, force: true, maxRetries: 10 })
    }
  }
  let child: ChildProcess | undefined
  let is_broken_off = false
  for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
    process.once(name, async () => {
      is_broken_off = true
      if (child?.pid !== undefined) await endOf(child.pid, 'SIGTERM')
      end()
      process.exit(128 + constants.signals[name])
    })
  }
  return {
    ...{ folder, quick_folder, end },
    async node(args, env) {
      child = spawn(process.execPath, args, {
        ...{ detached: true, stdio: ['ignore', 'inherit', 'inherit'] },
        env: { ...env, TMPDIR: folder, CONVEYOR_QUICK_PLACE: quick_folder },
      })
      const [code] = (await once(child, 'exit')) as [number | null]
      if (is_broken_off) return new Promise(() => {})
      const left = await endOf(child.pid as number)
      for (const command of left) console.error(`left behind: ${command}`)
      return left.length > 0 ? 1 : (code ?? 1)
    },
  }
}

/** Waits until nothing of a session runs any more; answers what had to be killed. */
async function endOf(session: number, ask?: NodeJS.Signals): Promise<string[]> {
  let left = runningIn(session)
  if (ask !== undefined) for (const { pid } of left) send(pid, ask)
  for (let ms = 0; left.length > 0 && ms < end_ms_max; ms += look_ms) {
    await sleep(look_ms)
    left = runningIn(session)
  }
  for (const { pid } of left) send(pid, 'SIGKILL')
  return left.map(({ command }) => command)
}

function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended by itself.
  }
}

/** By /proc, so on Linux only. */
function runningIn(id: number): { readonly pid: number; readonly command: string }[] {
  return namesIn('/proc').flatMap((pid) => {
    try {
      const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(/\) (?=\w )/)
      const [state, , , session] = fields.split(' ')
      if (session !== String(id) || state === 'Z') return []
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      return [{ pid: Number(pid), command }]
    } catch {
      return []
    }
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}
