/**
 * How long a check of a credential takes tells nothing of what is wrong with it: neither where a
 * signature, an address or a token differs from the right one, nor whether there is such a user.
 * Two classes of inputs are measured in an order drawn at random, and judged as dudect does.
 *
 * Measured in one process at the checks themselves, which sees differences of a few nanoseconds,
 * and with fewer measurements over a socket, where noise is a thousand times that.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { buildChild, type Edit } from '../support/store-child.ts'
import { t_max } from '../support/welch.ts'
import type { Given, Outcome, Proof } from './proof.ts'

interface Found {
  readonly says: string
  readonly n: number
  readonly t: number
  readonly difference_ns: number
}

const stops_early: Edit = {
  file: 'codec/signature.ts',
  from: 'if (timingSafeEqual(given, made))',
  to: 'if (given.every((byte, at) => byte === made[at]))',
}
const skips_unknown: Edit = {
  file: 'engine/access/secrets-to-compare.ts',
  from: 'return (found ?? other) as readonly string[]',
  to: 'return found ?? []',
}
const skips_closed: Edit = {
  file: 'engine/access/addresses.ts',
  from: 'const is_own = isHashOf(hash, webhookParts',
  to: 'const is_own = nonce !== no_nonce && isHashOf(hash, webhookParts',
}
/** The rows of the checks that a control is about. */
const [signatures, users, webhooks] = [
  [0, 2],
  [2, 6],
  [6, 8],
] as const

export const proof: Proof = {
  name: 'timing',
  says: 'the time of a refusal does not tell where a credential is wrong, nor who is known',
  unit: 'measurements',
  quick: 30_000,
  long: 11_100_000,
  run: (given) => measured(given, [], [0, Number.MAX_SAFE_INTEGER]),
  controls: [
    {
      says: 'a comparison that stops at the first difference',
      // With a tenth of it a busy machine does not see some nanoseconds.
      quick: 60_000,
      long: 100_000,
      run: (given) => measured(given, [stops_early], signatures),
    },
    {
      says: 'a look-up that compares nothing for an unknown user',
      quick: 6_000,
      long: 100_000,
      run: (given) => measured(given, [skips_unknown], users),
    },
    {
      says: 'a look-up that compares nothing where no webhook is open',
      quick: 6_000,
      long: 100_000,
      run: (given) => measured(given, [skips_closed], webhooks),
    },
  ],
}

async function measured(
  { n, seed, emit }: Given,
  edits: readonly Edit[],
  rows: readonly [number, number],
): Promise<Outcome> {
  const child = await buildChild('timing-child.ts', edits)
  try {
    const args = [child.script, n, seed, ...rows].map(String)
    const { stdout } = await promisify(execFile)(process.execPath, args)
    const found = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Found)
    for (const one of found) emit(lineOf(one))
    const seen = found.filter(({ t }) => Math.abs(t) >= t_max)
    const largest = Math.max(...found.map(({ t }) => Math.abs(t)))
    return {
      tried: found.reduce((sum, one) => sum + one.n, 0),
      faults: found.length,
      failures: seen.map((one) => ({ seed, says: `a difference is seen: ${lineOf(one)}` })),
      figures: { largest_t: largest.toFixed(2) },
    }
  } finally {
    await child.remove()
  }
}

function lineOf({ says, n, t, difference_ns }: Found): string {
  return `${says}: |t| ${Math.abs(t).toFixed(2)} of ${n}, ${difference_ns.toFixed(1)} ns`
}
