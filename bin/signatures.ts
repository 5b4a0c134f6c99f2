/**
 * `npm run signatures`: compares the signature of each installed package with the keys of its
 * registry, by `npm audit signatures`. Exits with 1 where a signature is wrong or missing. Where the
 * keys cannot be had, without a network or of a registry that has none, it says so and exits with 0.
 */
import { spawnSync } from 'node:child_process'

interface Package {
  readonly name: string
  readonly version: string
}

/** What npm prints: what it found, or why it could not look. */
interface Printed {
  readonly invalid?: readonly Package[]
  readonly missing?: readonly Package[]
  readonly error?: { readonly summary?: string }
}

const ms_max = 60_000
// npm tries again for more than a minute, and longer where names cannot be resolved.
const once = ['--fetch-retries', '0', '--fetch-timeout', '10000']
const ran = spawnSync('npm', ['audit', 'signatures', '--json', ...once], {
  encoding: 'utf8',
  timeout: ms_max,
})
const { invalid, missing, error }: Printed = parsed(ran.stdout) ?? {}
if (invalid === undefined || missing === undefined) {
  const why =
    error?.summary ?? ran.error?.message ?? (ran.stderr.trim().split('\n')[0] || 'no answer')
  console.log(`signatures of packages are not checked, their keys cannot be had: ${why}`)
} else {
  for (const { name, version } of invalid) console.error(`${name} ${version}: wrong signature`)
  for (const { name, version } of missing) console.error(`${name} ${version}: no signature`)
  if (invalid.length + missing.length > 0) process.exitCode = 1
  else console.log('each package has the signature of its registry')
}

function parsed(text: string): Printed | undefined {
  try {
    return JSON.parse(text) as Printed
  } catch {
    return undefined
  }
}
