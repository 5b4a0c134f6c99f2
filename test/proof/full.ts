/** `npm run proof:full`: see test/support/disk/full-disk.ts. */

import { type Change, type Counts, fillDisk } from '../support/disk/full-disk.ts'
import { diskHarness } from '../support/disk/harness.ts'
import { mountDisk, never_looks } from '../support/disk/small-disk.ts'
import type { Edit } from '../support/store-child.ts'
import { type Given, type Proof, tryEach } from './proof.ts'

async function run(given: Given, change: Change = {}) {
  const counts: Counts = { tmpfs: 0, ext4: 0, tasks: 0, refused: 0, kills: 0 }
  const harness = await diskHarness()
  const outcome = await tryEach(given, async (seed) => ({
    faults: await fillDisk(harness, seed, change, counts),
  }))
  return { ...outcome, figures: { ...counts } }
}

const answers_early: readonly Edit[] = [
  {
    file: 'store/group-commit.ts',
    from: 'for (const group of groups) group.reject(reason)',
    to: 'for (const group of groups) group.resolve()',
  },
]

/** Else requests are refused before the disk has a chance to. */
const looks_seldom: readonly Edit[] = [
  { file: 'store/commit-log/free-space.ts', from: '1024, 100]', to: '1024, 1_000]' },
  {
    file: 'store/commit-log/free-space.ts',
    from: 'if (!isRoomy() || !isRecent()) ask()',
    to: 'if (!isRecent()) ask()',
  },
]
/** What such a program is to fail with. */
const lost = /version \d+ was answered, there is|answered with not_found_task/

const keeps_tasks: readonly Edit[] = [
  { file: 'engine/requests/submission.ts', from: "name === 'cancel'", to: 'false' },
]

export const proof: Proof = {
  name: 'full',
  unit: 'disks',
  says:
    'on a disk that fills writes are refused in time, all that was answered can be read, reads and ' +
    'cancels go on, and the same server serves again once there is room',
  quick: 1,
  long: 100,
  missing() {
    const disk = mountDisk('ext4', 16)
    disk?.remove()
    return disk === undefined ? 'this user may not mount a small disk here' : undefined
  },
  run: (given) => run(given),
  controls: [
    {
      ...{ says: 'a program that never looks how much is free', quick: 1, long: 4 },
      run: (given) => run(given, { edits: never_looks, limits: { disk_free_bytes_min: 0 } }),
    },
    {
      ...{ says: 'a program that answers what the disk has refused', quick: 0, long: 4 },
      async run(given) {
        const edits = [...answers_early, ...looks_seldom]
        const outcome = await run(given, { edits, form: { thefts: 3 } })
        return { ...outcome, failures: outcome.failures.filter(({ says }) => lost.test(says)) }
      },
    },
    {
      ...{ says: 'a program that cancels nothing while the disk is full', quick: 1, long: 2 },
      run: (given) => run(given, { edits: keeps_tasks }),
    },
  ],
}
