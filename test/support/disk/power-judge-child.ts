/**
 * Judges its share of the images of a trace: `power-judge-child WORK`, a file with a `PowerWork`.
 * Prints before each image which one it is, for LMDB may kill the process.
 */
import { readFileSync, writeFileSync, writeSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { fractionsOf } from '../fractions.ts'
import { fatesOf, newDisk } from './power-disk.ts'
import { newPowerJudge } from './power-judge.ts'
import type { JudgeLine, PowerWork } from './power-work.ts'

const [path = ''] = process.argv.slice(2)
const work = deserialize(readFileSync(path)) as PowerWork
const { trace, seed, counts, share, shares, from, folder, failures_max } = work
const disk = newDisk(trace.events)
const judge = newPowerJudge(`${folder}/image`, trace)
const say = (line: JudgeLine): void => {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

let failures = 0
const end = Math.floor((counts.length * (share + 1)) / shares)
for (let at = Math.floor((counts.length * share) / shares); at < end; at++) {
  if (failures >= failures_max) break
  const cut = disk.cuts[at]
  const count = counts[at] ?? 0
  if (cut === undefined || count === 0) continue
  let n = 0
  for (const fates of fatesOf(cut, count, fractionsOf(seed + 7919 * at))) {
    const is_past = at < from.at || (at === from.at && n < from.n)
    const place = { at, n: n++ }
    if (is_past) continue
    say({ ...place, whole: fates.every((fate) => fate === 'there') })
    const failure = await judge.judge(disk.folderAfter(cut, fates), cut.line)
    if (failure === undefined) continue
    say({ ...place, says: `cut at line ${cut.line} of the trace: ${failure}` })
    if (++failures >= failures_max) break
  }
}
// More than a pipe may take at once.
writeFileSync(`${folder}/done`, serialize({ images: [...judge.images], states: judge.states.size }))
