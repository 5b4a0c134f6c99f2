/** The check of `doctor` on the databases that processes name in `db_call`. */
import { shellWord } from '../program.ts'
import { bad, type Check, ok, type Verdict, warn } from './check.ts'
import type { Facts } from './facts.ts'

function databaseVerdicts({ databases: given, inside }: Facts): Verdict[] {
  if (given !== undefined && 'wrong' in given) {
    return [bad(given.wrong, 'mend the file of --databases; `npx conveyor serve` needs it too')]
  }
  const diagnosis = inside?.diagnosis
  const served = diagnosis && 'databases' in diagnosis ? diagnosis.databases : undefined
  const known = given ?? served
  const found = (diagnosis?.instances ?? []).flatMap(({ conv_id, names }) => {
    const missing = names.filter((name) => known?.includes(name) !== true)
    if (missing.length === 0) return []
    const says = `process ${conv_id} queries databases that are not given: ${missing.join(', ')}`
    const show = `\`npx conveyor process show ${shellWord(conv_id)}\` names the nodes`
    const help = `add them to the file of --databases, or have a handler for db_call; ${show}`
    return [warn(says, help)]
  })
  if (found.length > 0 || known === undefined) return found
  return [ok(`${known.length} databases are given, and no process names another`)]
}

export const databaseChecks: readonly Check[] = [
  {
    name: 'databases',
    looks_at: 'databases that processes query and that are not given (--databases)',
    judge: databaseVerdicts,
  },
]
