/** `npm run proof:kill`: see test/support/kill-harness.ts. */
import { crash_forms } from '../support/commit-log-crash.ts'
import { fractionsOf } from '../support/fractions.ts'
import {
  buildKillChild,
  type KillHarness,
  newKillCounts,
  openKillHarness,
} from '../support/kill-harness.ts'
import type { BuiltChild, Edit } from '../support/store-child.ts'
import {
  type Experiment,
  type Failure,
  type Given,
  type Outcome,
  type Proof,
  tryEach,
} from './proof.ts'

/** So many kills on one file. */
const harness_rounds = 20

/** Kills programs of these sources, by turns of harnesses. */
async function kill(given: Given, sources: readonly (readonly Edit[])[]): Promise<Outcome> {
  const counts = newKillCounts()
  const children = new Map<number, BuiltChild>()
  /** Those that a run comes to. */
  const childOf = async (at: number): Promise<BuiltChild> => {
    const child = children.get(at) ?? (await buildKillChild(sources[at] as readonly Edit[]))
    children.set(at, child)
    return child
  }
  let harness: KillHarness | undefined
  let rounds = 0
  let began = Math.floor(given.seed / harness_rounds)
  const end = async (): Promise<string | undefined> => {
    const ended = harness
    harness = undefined
    return ended?.finish().finally(ended.close)
  }
  try {
    const outcome = await tryEach(given, async (seed) => {
      harness ??= await openKillHarness(await childOf(began % sources.length), counts)
      rounds++
      const failure = await harness.round(fractionsOf(seed))
      if (failure !== undefined) {
        await harness.close()
        harness = undefined
        began++
        return { faults: 1, failure }
      }
      if (rounds % harness_rounds !== 0) return { faults: 1 }
      began++
      const unfinished = await end()
      return { faults: 1, ...(unfinished !== undefined && { failure: unfinished }) }
    })
    const says = await end()
    const last: Failure[] = says === undefined ? [] : [{ seed: given.seed, says }]
    return { ...outcome, failures: [...outcome.failures, ...last], figures: { ...counts } }
  } finally {
    await Promise.all([...children.values()].map((child) => child.remove()))
  }
}

/** Kills a program of edited sources until one is seen to be wrong. */
function control(says: string, edits: readonly Edit[]): Experiment {
  const most = 6
  return {
    ...{ says, quick: most, long: most },
    async run(given) {
      const done: Failure[] = []
      const child = await buildKillChild(edits)
      const counts = newKillCounts()
      let tried = 0
      try {
        const harness = await openKillHarness(child, counts)
        while (tried < given.n && done.length === 0) {
          const seed = given.seed + tried++
          const found = await harness.round(fractionsOf(seed), 'load')
          if (found !== undefined) done.push({ seed, says: found })
        }
        await harness.close()
      } finally {
        await child.remove()
      }
      return { tried, faults: tried, failures: done }
    },
  }
}

export const proof: Proof = {
  name: 'kill',
  unit: 'kills',
  says:
    'a killed program with all servers, timers, calls, code and handlers at work loses nothing that ' +
    'it acknowledged, leaves no request in part and resumes no task twice',
  quick: 3,
  long: 1_000,
  run: (given) =>
    kill(
      given,
      crash_forms.map(({ edits }) => edits),
    ),
  controls: [
    control('a program that answers before its commit', [
      {
        file: 'store/group-commit.ts',
        from: 'return done.then(() => result)',
        to: 'return Promise.resolve(result)',
      },
      // Long enough behind the answers that a kill falls between.
      {
        file: 'store/group-commit.ts',
        from: 'tree.commit(group.changes).then(',
        to:
          'new Promise((later) => setTimeout(later, 30))' +
          '.then(() => tree.commit(group.changes)).then(',
      },
    ]),
    control('a program that makes a transaction of each op', [
      {
        file: 'engine/requests/submission.ts',
        from: 'return new Promise((settle, fail) => {\n      const request: Submitted',
        to:
          'if (ops.length > 1) return submit(ops.slice(0, 1), caller, may_wait).then(async (one) => ' +
          '[...one, ...(await submit(ops.slice(1), caller, may_wait))])\n    ' +
          'return new Promise((settle, fail) => {\n      const request: Submitted',
      },
    ]),
    control('a program that resumes a task twice', [
      {
        file: 'engine/tasks/ops.ts',
        from: 'if (resume_at !== stays) advance(tx, process, draft, resume_at)',
        to: 'for (let n = 0; resume_at !== stays && n < 2; n++) advance(tx, process, draft, resume_at)',
      },
    ]),
  ],
}
