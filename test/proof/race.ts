/** `npm run proof:race`: see test/support/race.ts. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { modifies, openRaces } from '../support/race.ts'
import { buildChild, type Edit } from '../support/store-child.ts'
import { type Experiment, type Given, type Outcome, type Proof, tryEach } from './proof.ts'

async function race(given: Given): Promise<Outcome> {
  const races = await openRaces()
  const outcome = await tryEach(given, async (seed) => {
    const failure = await races.race(seed)
    return { faults: modifies, ...(failure !== undefined && { failure }) }
  })
  const { won } = races
  const breaches = await races.close()
  const failures = breaches.map((says) => ({ seed: given.seed, says: `check: ${says}` }))
  const figures = {
    resumed_by: Object.entries(won)
      .map((pair) => pair.join(' '))
      .join(', '),
  }
  return { ...outcome, failures: [...outcome.failures, ...failures], figures }
}

/** The same races in an engine of edited sources. */
function control(says: string, edits: readonly Edit[]): Experiment {
  const n = 6
  return {
    ...{ says, quick: n, long: n },
    async run({ n, seed }) {
      const child = await buildChild('race-child.ts', edits)
      try {
        const run = promisify(execFile)
        const { stdout } = await run(process.execPath, [child.script, String(n), String(seed)])
        const wrong = JSON.parse(stdout) as string[]
        return { tried: n, faults: n * modifies, failures: wrong.map((says) => ({ seed, says })) }
      } finally {
        await child.remove()
      }
    },
  }
}

const file = 'engine/tasks/task-rules.ts'

export const proof: Proof = {
  name: 'race',
  unit: 'races',
  says: `of ${modifies} modifies at once, a timer and a handler exactly one resumes a task that waits`,
  quick: 10,
  long: 1_000,
  run: race,
  controls: [
    control('an engine that resumes a task without a look at where it waits', [
      { file, from: 'if (callback_at !== -1) return', to: 'if (task.logic_at >= 0) return' },
      { file, from: '(is_sync || node_id !== undefined) &&', to: '(is_sync && false) &&' },
    ]),
  ],
}
