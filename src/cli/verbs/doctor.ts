/**
 * `doctor`: judges the machine, the data file and its contents, a row of a table for each check. It
 * changes nothing and prints no data and no secret.
 */
import type { Check, Verdict } from '../doctor/check.ts'
import { clusterChecks } from '../doctor/cluster-checks.ts'
import { databaseChecks } from '../doctor/database-checks.ts'
import { collectFacts, type Facts } from '../doctor/facts.ts'
import { fileChecks } from '../doctor/file-checks.ts'
import { machineChecks } from '../doctor/machine-checks.ts'
import { type Exit, exits } from '../exit-codes.ts'
import { fileVerb } from '../file-verb.ts'
import type { Io } from '../io.ts'
import { printDone } from '../output.ts'
import { withFile, withProgram } from '../program.ts'
import { rowsText } from '../row-text.ts'
import { databases_flag, databasesOf } from '../serve/databases-file.ts'
import { commit_log_flag, partition_flag, wholeNumber } from '../serve/flags.ts'
import { columns } from '../text.ts'
import { dbOf, flag, type Given, isOn, text } from '../verb.ts'

const checks: readonly Check[] = [
  ...fileChecks,
  ...databaseChecks,
  ...machineChecks,
  ...clusterChecks,
]

export const doctorVerb = fileVerb('doctor', {
  flags: [
    flag('full', 'walk every invariant of the file too, as `check` does', { no_env: true }),
    flag('tls DIR', 'the certificates that `serve --tls` reads'),
    databases_flag,
    flag('public-url URL', 'the address that `serve --public-url` has'),
    flag('backup FILE', 'the newest backup, whose age is checked', { no_env: true }),
    commit_log_flag,
    partition_flag,
  ],
  says: 'say what is wrong with a file and its machine, and what helps',
  notes: [
    'Nothing is changed: a closed file is not checkpointed either. Exit: 0 where nothing is bad, 1',
    'where something is, 3 where the file cannot be read. It checks:',
    '',
    ...columns(checks.map(({ name, looks_at }) => ['', name, looks_at]))
      .trimEnd()
      .split('\n'),
  ],
  run: examine,
})

async function databaseNames(given: Given): Promise<Facts['databases']> {
  try {
    const found = await databasesOf(given)
    return found && Object.keys(found)
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string }
    if (code !== 'usage') throw error
    return { wrong: message }
  }
}

interface Row extends Verdict {
  readonly name: string
}

async function examine(given: Given, io: Io): Promise<Exit> {
  const { CONVEYOR_KEY: secret_key } = given.env
  const facts = await collectFacts(
    {
      db: dbOf(given),
      is_full: isOn(given, 'full'),
      ...{ tls: text(given, 'tls'), backup: text(given, 'backup'), secret_key },
      public_url: text(given, 'public-url'),
      databases: await databaseNames(given),
      commit_log: text(given, 'commit-log'),
      partition: wholeNumber('partition', text(given, 'partition') ?? '0'),
    },
    io,
  )
  const rows = rowsOf(facts).map((row) => withWords(row, given, io.program))
  const exit = exitOf(facts, rows)
  const json = JSON.stringify({ ok: exit === exits.done, checks: rows })
  return printDone(given, io, json, rowsText(rows)).then(() => exit)
}

export function rowsOf(facts: Facts): Row[] {
  return checks.flatMap(({ name, judge }) => {
    const verdicts = judge(facts) ?? []
    return [verdicts].flat().map((verdict) => ({ name, ...verdict }))
  })
}

function withWords(row: Row, given: Given, program: string): Row {
  if (row.help === undefined) return row
  return { ...row, help: withProgram(withFile(row.help, given), program) }
}

const unlooked: readonly Facts['state'][] = ['missing', 'held', 'unreadable']

function exitOf({ state, native_faults = [] }: Facts, rows: readonly Row[]): Exit {
  if (unlooked.includes(state) || native_faults.length > 0) return exits.unreachable
  return rows.some(({ level }) => level === 'bad') ? exits.refused : exits.done
}
