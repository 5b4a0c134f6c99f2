/** The rows of `doctor` and `smoke` for people: level, name, sentence, and what helps below it. */
import type { Level, Verdict } from './doctor/check.ts'
import { clean } from './text.ts'

const marks: Readonly<Record<Level, string>> = { ok: 'ok', warn: 'warn', bad: 'BAD' }

export function rowsText(rows: readonly (Verdict & { readonly name: string })[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length))
  const lines = rows.flatMap(({ level, name, says, help }) => [
    `${marks[level].padEnd(5)} ${name.padEnd(width)}  ${says}`,
    ...(help === undefined ? [] : [`${' '.repeat(width + 8)}→ ${help}`]),
  ])
  return lines.map((line) => `${clean(line)}\n`).join('')
}
