/**
 * `smoke`: tries on this machine what the engine needs of it, in a folder of its own that it
 * removes, in at most `ms_max`. It touches no data file of the user.
 */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keepAlive, steadyClock, within } from '../../core/clock.ts'
import { bad, type Verdict } from '../doctor/check.ts'
import { type Exit, exits } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { printDone } from '../output.ts'
import { rowsText } from '../row-text.ts'
import { smokeSteps } from '../smoke/steps.ts'
import { flag, type Given, json_flag, text, verbOf } from '../verb.ts'

const ms_max = 20_000

export const smokeVerb = verbOf('smoke', {
  flags: [
    flag('in DIR', 'the folder whose disk is tried (default: that of temporary files)'),
    json_flag,
  ],
  says: 'try in 20 s what works on this machine',
  notes: [
    'A line for each: ok, warn where a fallback is in use, BAD where nothing does. It tries Node,',
    'native files, the lock, how the disk is written, file watching, a kill with the recovery, the',
    'socket of the verbs and SIGTERM. Exit 1 if something is BAD.',
  ],
  run: smoke,
})

async function smoke(given: Given, io: Io): Promise<Exit> {
  const parent = text(given, 'in') ?? tmpdir()
  const folder = await realpath(await mkdtemp(join(parent, 'conveyor-smoke-')))
  const kills: (() => void)[] = []
  const setup = { folder, io, env: given.env, onChild: (kill: () => void) => kills.push(kill) }
  let rows: readonly (Verdict & { readonly name: string })[]
  const release = keepAlive()
  try {
    rows = await Promise.all(
      smokeSteps.map(async ([name, run]) => {
        const found = await within(steadyClock, ms_max, run(setup).catch(badOf))
        return { name, ...(found === 'late' ? bad('it took too long', 'try again') : found) }
      }),
    )
  } finally {
    release()
    for (const kill of kills) kill()
    await rm(folder, { recursive: true, force: true }).catch(() => {})
  }
  const is_good = rows.every(({ level }) => level !== 'bad')
  await printDone(given, io, { ok: is_good, checks: rows }, rowsText(rows))
  return is_good ? exits.done : exits.refused
}

function badOf(error: unknown): Verdict {
  return bad(error instanceof Error ? error.message : String(error), 'report it with this output')
}
