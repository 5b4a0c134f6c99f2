/** `npm run proof:drain`: see test/support/drain-bed.ts. */
import { type DrainBed, newDrainCounts, openDrainBed } from '../support/drain-bed.ts'
import { fractionsOf } from '../support/fractions.ts'
import { buildKillChild } from '../support/kill-bed.ts'
import type { Edit } from '../support/store-child.ts'
import { type Experiment, type Given, type Outcome, type Proof, tryEach } from './proof.ts'

/** So many ends on one file. */
const bed_rounds = 20

async function drain(given: Given, edits: readonly Edit[]): Promise<Outcome> {
  const counts = newDrainCounts()
  const child = await buildKillChild(edits)
  let bed: DrainBed | undefined
  let rounds = 0
  try {
    const outcome = await tryEach(given, async (seed) => {
      bed ??= await openDrainBed(child, counts)
      const failure = await bed.round(fractionsOf(seed))
      if (++rounds % bed_rounds === 0 || failure !== undefined) {
        await bed.close()
        bed = undefined
      }
      return { faults: 1, ...(failure !== undefined && { failure }) }
    })
    return { ...outcome, figures: { ...counts } }
  } finally {
    await bed?.close()
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
