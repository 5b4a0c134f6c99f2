/**
 * Tries each mutant with the histories or months of the seeds from one on, until one of them fails.
 *
 *     node mutants-child.mjs histories|months SEED TRIES_MAX '["mutant", …]'
 */
import { memoryDisk } from './harness.ts'
import { runHistory } from './history.ts'
import { runMonth } from './month.ts'
import type { Found } from './mutants.ts'

const [kind, seed = '0', n = '1', names = '[]'] = process.argv.slice(2)
const found: Found[] = []
for (const says of JSON.parse(names) as string[]) {
  Object.assign(globalThis, { wrong: says })
  let tried = 0
  let error: string | undefined
  while (tried < Number(n) && error === undefined) {
    try {
      const own_seed = Number(seed) + tried
      await (kind === 'months' ? runMonth(own_seed) : runHistory(own_seed, memoryDisk()))
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.message : String(thrown)
    }
    tried++
  }
  const at = error === undefined ? undefined : Number(seed) + tried - 1
  found.push({ says, tried, seed: at, error })
}
console.log(JSON.stringify(found))
