/**
 * Child of the proof of vectors: tries hostile rows, one after another, and prints a line for each
 * whose answer is not the stated one, and one with the counts at the end of each trial. A trial may
 * be with a part of the program that was made worse.
 *
 * `node child.js TRIALS ROWS`, JSON of an array of `Trial`, and how many rows there should be
 */
import { type HostileBed, worse_variable } from './hostile-row.ts'
import { hostile_classes } from './hostile-rows.ts'

export interface Trial {
  readonly name: string
  /** Whether the part of this name is made worse. */
  readonly is_worse: boolean
  /** A class, and a pattern for what its rows say; all rows without it, mixed. */
  readonly only?: readonly [name: string, says: string]
  /** Counted through those rows, and round. */
  readonly first: number
  /** Once all without it. */
  readonly count?: number
}

const silent_ms_max = 20_000
const mixed_step = 10_007
const all = hostile_classes.flatMap((one) => one.rows.map((row, at) => ({ ...row, at, one })))
/** So that each part of them has some of every class; the step divides no count of rows. */
const mixed = all.map((_, place) => all[(place * mixed_step) % all.length] as (typeof all)[number])

const [trials, rows_told] = process.argv.slice(2)
if (all.length !== Number(rows_told)) {
  told({ trial: 'claim', at: 0, says: `there are ${all.length} rows, not ${rows_told}` })
}
for (const trial of JSON.parse(trials as string) as Trial[]) {
  process.env[worse_variable] = trial.is_worse ? trial.name : ''
  const beds = new Map<string, HostileBed>()
  const counts: Record<string, number> = {}
  const [name, says = ''] = trial.only ?? []
  const tried =
    name === undefined
      ? mixed
      : all.filter((row) => row.one.name === name && new RegExp(says).test(row.says))
  const count = trial.count ?? tried.length
  for (let place = trial.first; place < trial.first + count; place++) {
    const { one, at, says, code } = tried[place % tried.length] as (typeof all)[number]
    const bed = beds.get(one.name) ?? (await one.open())
    beds.set(one.name, bed)
    const answered = await inTime(bed.answerTo(at))
    const honest = await inTime(bed.honest())
    counts[one.name] = (counts[one.name] ?? 0) + 1
    const found = [
      ...(answered === code ? [] : [`answered ${answered}, not ${code}`]),
      ...(honest === 'ok' ? [] : [`a good one afterwards: ${honest}`]),
      ...bed.bugs.splice(0).map((bug) => `a bug: ${(bug as Error)?.stack ?? bug}`),
    ]
    if (found.length === 0) continue
    told({ trial: trial.name, at: place, says: `${one.name}, ${says}: ${found.join('; ')}` })
  }
  for (const bed of beds.values()) await bed.close()
  told({ trial: trial.name, counts })
}

function told(line: object): void {
  console.log(JSON.stringify(line))
}

async function inTime(made: Promise<string>): Promise<string> {
  let late: NodeJS.Timeout | undefined
  const silence = new Promise<string>((resolve) => {
    late = setTimeout(() => resolve('nothing'), silent_ms_max)
  })
  const answer = await Promise.race([made, silence])
  clearTimeout(late)
  return answer
}
