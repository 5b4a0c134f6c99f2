/** The tables of incidents in the runbook (deploy/README.md), for the tests that play them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { top } from './package-folder.ts'

/** What an incident leaves, and what its row says of it. */
export interface Traces {
  readonly incident: string
  /**
   * The event of the line, and its code where it has one; what is printed where it does not start;
   * none where nothing is told.
   */
  readonly line?: string
  /** None where there is no process to ask. */
  readonly metric?: string
  /** The status of /readyz, and the checks that fail; none where it may not answer. */
  readonly ready?: string
}

/** The first four cells of each row of the table behind this mark. */
export function runbookRows(mark: string): string[][] {
  const runbook = readFileSync(join(top, 'deploy/README.md'), 'utf8')
  const [, table = ''] = new RegExp(`<!-- ${mark} -->\\n((?:\\|.*\\n)+)`).exec(runbook) ?? []
  const rows = table.trim().split('\n').slice(2)
  return rows.map((row) => row.slice(2, -2).split(' | ').slice(0, 4))
}

export function cellsOf({ incident, line, metric, ready }: Traces): string[] {
  const code = (text: string | undefined): string => (text === undefined ? '—' : `\`${text}\``)
  return [incident, code(line), code(metric), code(ready)]
}
