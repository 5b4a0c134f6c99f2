/**
 * What random histories have met: of each table of the engine every row, or the histories are not
 * random enough.
 */
import { opFaults } from '../../../src/core/faults.ts'
import { comparisonTable } from '../../../src/process/logics/comparisons.ts'
import { handler_types, logicTable } from '../../../src/process/logics/table.ts'

/** A failed read of a damaged file, and answers of megabytes, have tests of their own. */
const elsewhere = ['task_damaged', 'answer_too_large']

const whys =
  'create go callback modify copy rpc count timer handler call code reply queue fail retry move migrate cancel'

/** What is counted, by the words that begin its name. */
const tables: readonly (readonly [title: string, names: readonly string[]])[] = [
  ['logics', [...logicTable.map(({ type }) => type), ...handler_types]],
  ['comparisons', comparisonTable.map(({ cast, fun }) => `${cast} ${fun}`)],
  ['reasons in histories', whys.split(' ').map((why) => `why ${why}`)],
  ['transitions', transitions()],
  ['disks broken', ['break lost', 'break kept']],
]

function transitions(): string[] {
  const live = ['processing', 'delayed', 'failed']
  const all = [...live, 'processed', 'canceled']
  const of_new = live.concat('processed').map((to) => `new → ${to}`)
  const from = live.flatMap((one) => all.map((to) => `${one} → ${to}`))
  return [...of_new, ...from]
}

/** The codes that results of ops had; a code that no op had is missing. */
function codes(): string[] {
  return Object.keys(opFaults).filter((code) => !elsewhere.includes(code))
}

const countOf = (met: ReadonlyMap<string, number>, name: string): number => met.get(name) ?? 0

function codeCount(met: ReadonlyMap<string, number>, code: string): number {
  let count = 0
  for (const [what, times] of met) if (what.endsWith(` ${code}`)) count += times
  return count
}

export function missingOf(met: ReadonlyMap<string, number>): string[] {
  const rows = tables.flatMap(([, names]) => names).filter((name) => countOf(met, name) === 0)
  return [...rows, ...codes().filter((code) => codeCount(met, code) === 0)]
}

/** One line for each table, with how often each row was met, the rarest first. */
export function toldOf(met: ReadonlyMap<string, number>): string[] {
  const line = (title: string, counts: readonly (readonly [string, number])[]): string => {
    const sorted = [...counts].sort(([, one], [, other]) => one - other)
    return `${title}: ${sorted.map(([name, times]) => `${name} ${times}`).join(', ')}`
  }
  const tags = [...met].filter(([what]) => what.startsWith('tag '))
  const steps = [...met].filter(([what]) => what.startsWith('step '))
  return [
    ...tables.map(([title, names]) =>
      line(
        title,
        names.map((name) => [name, countOf(met, name)]),
      ),
    ),
    line(
      'codes',
      codes().map((code) => [code, codeCount(met, code)]),
    ),
    line(
      'tags',
      tags.map(([what, times]) => [what.slice(4), times]),
    ),
    line(
      'steps',
      steps.map(([what, times]) => [what.slice(5), times]),
    ),
  ]
}
