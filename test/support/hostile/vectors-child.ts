/**
 * Child of the proof of vectors: tries hostile rows, one after another, and prints a line for each
 * whose answer is not the stated one, and one with the counts at the end of each trial. A trial may
 * be with a part of the program that was made worse.
 *
 * `node child.js TRIALS ROWS`, JSON of an array of `Trial`, and how many rows there should be
 */
import { hostile_access } from './access.ts'
import { hostile_addresses } from './addresses.ts'
import { hostile_certificates } from './certificates.ts'
import { hostile_code } from './code.ts'
import { hostile_frames } from './frames.ts'
import { hostile_grpc } from './grpc.ts'
import { hostile_http } from './http.ts'
import { type HostileClass, type HostileRunner, worse_variable } from './row.ts'

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

const classes: readonly HostileClass<unknown>[] = [
  ...hostile_http,
  ...[hostile_grpc, hostile_frames, hostile_access, hostile_certificates],
  ...[hostile_addresses, hostile_code],
]
const silent_ms_max = 20_000
const mixed_step = 10_007
const all = classes.flatMap((one) =>
  one.rows.map(([says, code, sent], at) => ({ says, code, sent, at, one })),
)
/** So that each part of them has some of every class; the step divides no count of rows. */
const mixed = all.map((_, place) => all[(place * mixed_step) % all.length] as (typeof all)[number])

const [trials, rows_expected] = process.argv.slice(2)
if (all.length !== Number(rows_expected)) {
  print({ trial: 'claim', at: 0, says: `there are ${all.length} rows, not ${rows_expected}` })
}
for (const trial of JSON.parse(trials as string) as Trial[]) {
  process.env[worse_variable] = trial.is_worse ? trial.name : ''
  const runners = new Map<string, HostileRunner<unknown>>()
  const counts: Record<string, number> = {}
  const [name, says = ''] = trial.only ?? []
  const tried =
    name === undefined
      ? mixed
      : all.filter((row) => row.one.name === name && new RegExp(says).test(row.says))
  const count = trial.count ?? tried.length
  for (let place = trial.first; place < trial.first + count; place++) {
    const { one, at, says, code, sent } = tried[place % tried.length] as (typeof all)[number]
    const runner = runners.get(one.name) ?? (await one.open())
    runners.set(one.name, runner)
    const answered = await inTime(runner.answerTo(sent, at, code))
    const honest = await inTime(runner.honest())
    counts[one.name] = (counts[one.name] ?? 0) + 1
    const found = [
      ...(answered === code ? [] : [`answered ${answered}, not ${code}`]),
      ...(honest === 'ok' ? [] : [`a good one afterwards: ${honest}`]),
      ...runner.bugs.splice(0).map((bug) => `a bug: ${(bug as Error)?.stack ?? bug}`),
    ]
    if (found.length === 0) continue
    print({ trial: trial.name, at: place, says: `${one.name}, ${says}: ${found.join('; ')}` })
  }
  for (const runner of runners.values()) await runner.close()
  print({ trial: trial.name, counts })
}

function print(line: object): void {
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
