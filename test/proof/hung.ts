/** `npm run proof:hung`: see test/support/disk/hung-harness.ts. */

import { diskHarness, whyNoIoLibrary } from '../support/disk/harness.ts'
import { holdOnce } from '../support/disk/hung-harness.ts'
import {
  type Bounds,
  ends,
  type HungCounts,
  kinds,
  newHungCounts,
  type Plan,
  type Program,
  sound,
} from '../support/disk/hung-hold.ts'
import { holdLibrary } from '../support/disk/hung-library.ts'
import { fractionsOf } from '../support/fractions.ts'
import { slower } from '../support/waits.ts'
import {
  type Experiment,
  type Given,
  type Outcome,
  type Proof,
  type Tried,
  tryEach,
} from './proof.ts'

/** Of this number are the holds of the quick form, which are short and small. */
const quick_n = 2
/** A hold is mostly a pause. */
const at_once = 4
const mb = 1024 * 1024

const small: Bounds = {
  ...{ queue_ops_max: 400, queue_bytes_max: 2 * mb, unverified_bytes_max: 16 * mb },
  ...{ checkpoint_bytes: mb / 4, ready_ms_max: 300, slow_commit_ms: 150, drain_ms_max: 300 },
}
/** As they are by default, but for a commit log that is full sooner and a shorter drain. */
const usual: Bounds = {
  ...{ queue_ops_max: 10_000, queue_bytes_max: 64 * mb, unverified_bytes_max: 64 * mb },
  ...{ checkpoint_bytes: mb, ready_ms_max: 2_000, slow_commit_ms: 1_000, drain_ms_max: 4_000 },
}

export function planOf(seed: number, is_quick: boolean): Plan {
  const fraction = fractionsOf(seed)
  const inTime = (bounds: Bounds): Bounds => ({
    ...bounds,
    drain_ms_max: Math.round(slower() * bounds.drain_ms_max),
  })
  const kind = kinds[seed % kinds.length] as Plan['kind']
  const end = ends[Math.floor(fraction() * ends.length)] as Plan['end']
  if (is_quick) {
    const hold_ms = 600 + Math.floor(2 * fraction())
    return { kind, end, bounds: inTime(small), hold_ms, slow_ms: 150, flood_bytes: 0 }
  }
  const bounds = inTime(fraction() < 0.5 ? small : usual)
  const hold_ms = Math.round(2_000 + 8_000 * fraction())
  const slow_ms = Math.round(300 + 2_700 * fraction())
  return { kind, end, bounds, hold_ms, slow_ms, flood_bytes: 4 * bounds.queue_bytes_max }
}

async function run(given: Given, program: Program, of?: Partial<Plan>): Promise<Outcome> {
  const harness = await diskHarness()
  const counts: HungCounts = newHungCounts()
  const is_quick = given.n === quick_n || of !== undefined
  const hold = async (seed: number): Promise<Tried> => {
    const plan = { ...planOf(seed, is_quick), ...of }
    try {
      if (plan.kind === 'library') await holdLibrary(harness, plan)
      else await holdOnce(harness, plan, program, counts)
      return { faults: 1 }
    } catch (error) {
      const { kind, end, bounds } = plan
      const of = bounds.queue_ops_max === small.queue_ops_max ? 'small' : 'usual'
      return { faults: 1, failure: `${kind}, ${end}, ${of} bounds: ${(error as Error).stack}` }
    }
  }
  return { ...(await tryEach(given, hold, at_once)), figures: { ...counts } }
}

const early: Program = {
  ...sound,
  edits: [
    {
      file: 'store/group-commit.ts',
      from: 'return done.then(() => result)',
      to: 'return Promise.resolve(result)',
    },
  ],
}
const endless: Program = {
  ...sound,
  limits: {
    ...{ queue_ops_max: 1e9, queue_bytes_max: 64_000 * mb, unverified_bytes_max: 64_000 * mb },
  },
}

/** Of the commit log, short and small. */
const control = (says: string, program: Program): Experiment => ({
  ...{ says, quick: 1, long: 4 },
  run: (given) => run(given, program, { kind: 'log' }),
})

const grows: Experiment = {
  ...{ says: 'the same, of which its memory alone is judged', quick: 0, long: 2 },
  run: (given) => run(given, endless, { kind: 'log', flood_bytes: 150 * mb, is_of_memory: true }),
}

export const proof: Proof = {
  name: 'hung',
  unit: 'holds',
  says:
    'a program whose disk hangs or is slow answers nothing early, refuses in time what it may not ' +
    'hold, says so in its health and its log, and goes on once the disk does',
  quick: quick_n,
  long: 100,
  missing: whyNoIoLibrary,
  run: (given) => run(given, sound),
  controls: [
    control('a program that answers before the write', early),
    control('a program whose queue has no bound', endless),
    grows,
  ],
}
