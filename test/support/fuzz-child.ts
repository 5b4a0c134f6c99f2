/**
 * `fuzz-child FIRST_SEED COUNT` tries seeds of proof/fuzz.ts, and prints a line of JSON for each block
 * of seeds and for each failure.
 */
import { type FuzzHarness, openFuzzHarness } from './fuzz-harness.ts'
import { kindOf } from './fuzz-kinds.ts'
import { watchStalls } from './fuzz-stalls.ts'

/** Seeds tried at once, and on one engine. */
const sequences = 32
const block = 5_000
const answer_ms_max = 30_000
/** Seeds between two lines that show progress. */
const progress_every = 100

const [first = 1, count = 1] = process.argv.slice(2).map(Number)
const report = (line: object): void => console.log(JSON.stringify(line))
const stalls = watchStalls()

for (let from = first; from < first + count; from += block) {
  const to = Math.min(from + block, first + count)
  const harness = await openFuzzHarness()
  const counts: Record<string, number> = {}
  const open = new Set<number>()
  let next = from
  const sequence = async (): Promise<void> => {
    while (next < to) {
      const seed = next++
      if (seed % progress_every === 0) report({ seed })
      open.add(seed)
      const kind = kindOf(seed)
      counts[kind.name] = (counts[kind.name] ?? 0) + 1
      const failure = await inTime(kind.run(harness, seed)).catch((thrown) =>
        String(thrown?.stack ?? thrown),
      )
      if (failure !== undefined) report({ seed, failure: `${kind.name}: ${failure}` })
      const stall_ms = stalls.take_ms()
      if (stall_ms > 1_000) {
        report({
          seed,
          failure: `the event loop was blocked for ${stall_ms} ms, at ${[...open].join()}`,
        })
      }
      for (const bug of harness.bugs.splice(0)) {
        report({ seed, failure: `a bug, at ${[...open].join()}: ${(bug as Error)?.stack ?? bug}` })
      }
      open.delete(seed)
    }
  }
  await Promise.all(Array.from({ length: sequences }, sequence))
  const failure = await afterwards(harness)
  if (failure !== undefined)
    report({ seed: from, failure: `after ${from} to ${to - 1}: ${failure}` })
  report({ counts, stall_ms: stalls.longest_ms() })
  await harness.close()
}
stalls.end()

/** What is wrong with an engine that must be as if nothing had happened. */
async function afterwards({ engine }: FuzzHarness): Promise<string | undefined> {
  const { breaches } = await engine.check()
  if (breaches.length > 0)
    return `check: ${breaches
      .slice(0, 5)
      .map((one) => JSON.stringify(one))
      .join('; ')}`
  const { proc } = await engine.create({ conv_id: '1234', ref: 'honest', data: { a: 1 } })
  const { proc: modified } = await engine.modify({ conv_id: '1234', ref: 'honest', data: { a: 2 } })
  return proc === 'ok' && modified === 'ok' ? undefined : `an honest request: ${proc}, ${modified}`
}

async function inTime<Made>(made: Promise<Made>): Promise<Made> {
  let cancel: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    cancel = setTimeout(() => reject(new Error(`no answer in ${answer_ms_max} ms`)), answer_ms_max)
  })
  return Promise.race([made, late]).finally(() => clearTimeout(cancel))
}
