/** `npm run proof:drain`: see test/support/drain-harness.ts. */
import { type DrainHarness, newDrainCounts, openDrainHarness } from '../support/drain-harness.ts'
import { fractionsOf } from '../support/fractions.ts'
import { buildKillChild } from '../support/kill-harness.ts'
import type { Edit } from '../support/store-child.ts'
import { type Experiment, type Given, type Outcome, type Proof, tryEach } from './proof.ts'

/** So many ends on one file. */
const harness_rounds = 20

async function drain(given: Given, edits: readonly Edit[]): Promise<Outcome> {
  const counts = newDrainCounts()
  const child = await buildKillChild(edits)
  let harness: DrainHarness | undefined
  let rounds = 0
  try {
    const outcome = await tryEach(given, async (seed) => {
      harness ??= await openDrainHarness(child, counts)
      const failure = await harness.round(fractionsOf(seed))
      if (++rounds % harness_rounds === 0 || failure !== undefined) {
        await harness.close()
        harness = undefined
      }
      return { faults: 1, ...(failure !== undefined && { failure }) }
    })
    return { ...outcome, figures: { ...counts } }
  } finally {
    await harness?.close()
    await child.remove()
  }
}

const at_once: Experiment = {
  says: 'a program whose HTTP server closes its sockets at once',
  quick: 1,
  long: 5,
  run: (given) =>
    drain(given, [
      {
        file: 'server/http/server-events.ts',
        from: 'await inputRead(() => seen)',
        to: 'for (const socket of connections.keys()) socket.destroy()',
      },
    ]),
}

export const proof: Proof = {
  name: 'drain',
  unit: 'ends',
  says:
    'a program that SIGTERM ends under load answers what was sent before, whole, loses nothing that it ' +
    'acknowledged, and ends with 0 in time',
  quick: 2,
  long: 200,
  run: (given) => drain(given, []),
  controls: [at_once],
}
