/**
 * The frame of a proof: an experiment that anyone can repeat with `npm run proof:NAME`. It tries a
 * claim many times, from a seed that is printed, and counts what went wrong. Beside each claim
 * stands at least one control: the same experiment on something that was made wrong. A control that
 * does not fail says that the experiment sees nothing, so it fails the proof. The quick form tries
 * one of them, which the seed chooses.
 *
 * The try at place k of a run has the seed `seed + k`, so `--seed S --n 1` repeats any one of them.
 */

export interface Given {
  /** How many to try. */
  readonly n: number
  readonly seed: number
  /** Ends after so many failures, each of which costs as much as any other try. */
  readonly failures_max: number
  /** Prints a line on how far it is. */
  emit(line: string): void
}

export interface Failure {
  /** That repeats it alone. */
  readonly seed: number
  readonly says: string
}

export interface Outcome {
  /** In the unit of the proof. */
  readonly tried: number
  /** Kills, failed writes, hostile requests and the like that were injected. */
  readonly faults: number
  readonly failures: readonly Failure[]
  /** What else was measured: a name with its unit, such as `p99_ms`. */
  readonly figures?: Readonly<Record<string, number | string>>
}

export interface Experiment {
  /** What must hold, or for a control what was made wrong. */
  readonly says: string
  /** How many to try in `npm test`, 0 for a control that takes too long there, and by `npm run proof:NAME`. */
  readonly quick: number
  readonly long: number
  run(given: Given): Promise<Outcome>
}

export interface Proof extends Experiment {
  readonly name: string
  /** What is counted, in the plural: rounds, images. */
  readonly unit: string
  /** Why it cannot be tried here, such as a program that is missing. */
  missing?(): string | undefined
  readonly controls: readonly Experiment[]
}

/** What one try has found. */
export interface Tried {
  readonly faults: number
  /** What went wrong, if anything did. */
  readonly failure?: string
}

const failures_max = 20
/** Shorter runs report nothing until they are over. */
const reported_from = 100
/** Of a failure, before it is reported whole at the end. */
const reported_chars = 1_000

/** Tries `n` times, so many at once; what a try throws is its failure. */
export async function tryEach(
  { n, seed, failures_max, emit }: Given,
  one: (seed: number) => Promise<Tried>,
  at_once = 1,
): Promise<Outcome> {
  const failures: Failure[] = []
  let [begun, tried, faults] = [0, 0, 0]
  const report_every = Math.max(1, Math.floor(n / 10))
  const add = (failure: Failure): void => {
    failures.push(failure)
    if (n >= reported_from) emit(`seed ${failure.seed}: ${failure.says.slice(0, reported_chars)}`)
  }
  const work = async (): Promise<void> => {
    while (begun < n && failures.length < failures_max) {
      const own_seed = seed + begun++
      try {
        const found = await one(own_seed)
        faults += found.faults
        if (found.failure !== undefined) add({ seed: own_seed, says: found.failure })
      } catch (error) {
        add({ seed: own_seed, says: messageOf(error) })
      }
      tried++
      if (n >= reported_from && tried % report_every === 0 && tried < n)
        emit(`${tried} of ${n}, ${failures.length} failures`)
    }
  }
  await Promise.all(Array.from({ length: at_once }, work))
  return { tried, faults, failures }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Runs the claim and its controls; answers whether the claim held and each control failed. */
export async function judge(
  proof: Proof,
  form: 'quick' | 'long',
  given: { readonly seed: number; readonly n?: number },
  emit: (line: string) => void,
): Promise<boolean> {
  const { name, unit, controls } = proof
  const began_ms = performance.now()
  const own = { n: given.n ?? proof[form], seed: given.seed, failures_max, emit }
  emit(`${name}: ${proof.says}`)
  emit(`seed ${own.seed}, to repeat it: npm run proof:${name} -- --seed ${own.seed} --n ${own.n}`)
  const outcome = await proof.run(own)
  for (const { seed, says } of outcome.failures) {
    emit(`FAILED, to repeat it: npm run proof:${name} -- --seed ${seed} --n 1\n${says}`)
  }
  const seconds = ((performance.now() - began_ms) / 1_000).toFixed(1)
  const { tried, faults, failures, figures = {} } = outcome
  const measured = Object.entries(figures).map(([what, value]) => `; ${what} ${value}`)
  emit(
    `${name}: ${tried} ${unit}, ${faults} faults injected, ${failures.length} failures, ${seconds} s` +
      measured.join(''),
  )
  let is_held = tried > 0 && failures.length === 0
  const able = controls.filter((control) => control[form] > 0)
  const chosen = form === 'long' ? able : able.filter((_, at) => at === own.seed % able.length)
  for (const control of chosen) {
    // In the quick form one failure says that the experiment sees something.
    const enough = form === 'quick' ? 1 : failures_max
    const { tried, failures } = await control.run({
      ...{ n: control[form], seed: given.seed, failures_max: enough, emit },
    })
    const says = `control, ${control.says}: ${failures.length} failures of ${tried} ${unit}`
    emit(failures.length > 0 ? `${says}, as it must` : `FAILED ${says}; it must fail`)
    if (failures.length === 0) is_held = false
  }
  return is_held
}
