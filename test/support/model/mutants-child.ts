/**
 * Tries each mutant with the histories of the seeds from one on, until one of them fails.
 *
 *     node mutants-child.mjs SEED HISTORIES_MAX '["mutant", …]'
 */
import { memoryDisk } from './harness.ts'
import { runHistory } from './history.ts'
import type { Found } from './mutants.ts'

const [seed = '0', n = '1', names = '[]'] = process.argv.slice(2)
const found: Found[] = []
for (const says of JSON.parse(names) as string[]) {
  Object.assign(globalThis, { wrong: says })
  let tried = 0
  let error: string | undefined
  while (tried < Number(n) && error === undefined) {
    try {
      await runHistory(Number(seed) + tried, memoryDisk())
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.message : String(thrown)
    }
    tried++
  }
  const at = error === undefined ? undefined : Number(seed) + tried - 1
  found.push({ says, tried, seed: at, error })
}
console.log(JSON.stringify(found))
