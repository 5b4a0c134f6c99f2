/**
 * The moment that `restore --from` names: read from a target of continuous backup and checked, part
 * by part, while it becomes a data file.
 */
import { systemChance } from '../core/clock.ts'
import { fault, isFault } from '../core/faults.ts'
import { writeFault } from '../store/disk/file-system.ts'
import { type Exit, usageError } from './exit-codes.ts'
import type { Io } from './io.ts'
import { printDone } from './output.ts'
import { linesText, timeText } from './text.ts'
import { type Flag, flag, type Given, isOn, text } from './verb.ts'

export const moment_flags: readonly Flag[] = [
  flag('from FOLDER', 'in place of BACKUP: where `serve --backup-to` ships to', { no_env: true }),
  flag('latest', 'with --from: all that it has', { no_env: true }),
  flag('to TIME', 'with --from: as it was then, such as 2026-11-23T10:15:00Z', { no_env: true }),
  flag('to-position N', 'with --from: with this commit as the last', { no_env: true }),
  flag('dry-run', 'with --from: read and check it all, and write nothing', { no_env: true }),
]

export interface Moment {
  readonly says: string
  /** What was restored, for programs and for people. */
  readonly json: Readonly<Record<string, number>>
  readonly line: string
  write(path: string): Promise<void>
  dryRun(): Promise<Exit>
}

/** Undefined without --from. Throws a usage fault, or why the target does not have the moment. */
export async function momentOf(given: Given, io: Io): Promise<Moment | undefined> {
  const from = text(given, 'from')
  const of_moment = ['latest', 'to', 'to-position', 'dry-run'].find((name) =>
    Object.hasOwn(given.flags, name),
  )
  if (from === undefined) {
    if (of_moment !== undefined) throw usageError(`--${of_moment} is for --from FOLDER`)
    if (given.words.length === 0) throw usageError('name a BACKUP, or --from FOLDER')
    return undefined
  }
  if (given.words.length > 0) throw usageError('name a BACKUP or --from FOLDER, not both')
  const goal = goalOf(given)
  const { openPlan } = await import('../backups/open-plan.ts')
  const { checkPlan, materialise } = await import('../backups/materialise.ts')
  const place = { now_ms: io.clock.now_ms(), chance: systemChance }
  const { source, plan } = await openPlan(from, goal, place)
  const { to_seq: position, at_ms } = plan
  const says = `position ${position} of ${from}, which it had at ${timeText(at_ms)}`
  return {
    says,
    json: { position, at_ms },
    line: `it is ${says}`,
    async write(path) {
      await materialise(source, plan, path).catch((error) => {
        if (isFault(error) && error.code === 'no_space') {
          throw fault('no_space', 'the disk is full; make room for the restored file')
        }
        throw isFault(error) ? error : writeFault(path, error)
      })
    },
    async dryRun() {
      const { bytes, frames } = await checkPlan(source, plan)
      const json = JSON.stringify({ position, at_ms, bytes, frames })
      const line = `can restore ${says}: ${bytes} bytes in ${frames} frames, all whole`
      return printDone(given, io, json, linesText([line]))
    },
  }
}

function goalOf(given: Given) {
  const [time, position] = [text(given, 'to'), text(given, 'to-position')]
  const is_latest = isOn(given, 'latest')
  const count = [time, position, is_latest || undefined].filter((one) => one !== undefined).length
  if (count !== 1) throw usageError('--from takes one of --latest, --to TIME, --to-position N')
  if (is_latest) return { to: 'latest' } as const
  if (position !== undefined) {
    if (!/^[0-9]{1,15}$/.test(position)) throw usageError('--to-position takes a whole number')
    return { to: 'position', seq: Number(position) } as const
  }
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/
  const at_ms = form.test(time ?? '') ? Date.parse(time as string) : Number.NaN
  if (Number.isNaN(at_ms)) throw usageError('--to takes a time such as 2026-11-23T10:15:00Z')
  return { to: 'time', at_ms } as const
}
