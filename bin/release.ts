/**
 * `npm run release:check`: builds and packs the package twice and says whether it is ready to be
 * published: version, changelog, tarball, provenance and SBOM (release-checks.ts). It publishes
 * nothing; at the end it prints the commands for the person who does. Exits 1 while something is
 * wrong.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { version } from '../src/core/version.ts'
import { type ReleaseFacts, releaseChecks } from './release-checks.ts'

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

const top = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'conveyor-release-'))
try {
  run('npm', ['run', '-s', 'build'])
  const [first, again] = [pack(), pack()] as const
  const facts: ReleaseFacts = {
    manifest: JSON.parse(read('package.json')),
    versions: { source: version, lock: JSON.parse(read('package-lock.json')).version },
    changelog: read('CHANGELOG.md'),
    changed: lines(run('git', ['status', '--porcelain'])).map((line) => line.trim()),
    tags: lines(run('git', ['tag', '--list'])),
    tarball: {
      files: first.files.map(({ path }) => path),
      bytes: first.size,
      bytes_unpacked: first.unpackedSize,
    },
    digests: [first.digest, again.digest],
    sbom: read('dist/sbom.cdx.json'),
  }
  let wrong = 0
  for (const [what, check] of releaseChecks) {
    const found = check(facts)
    wrong += found.length
    console.log(`${found.length === 0 ? 'ok ' : 'BAD'}  ${what}`)
    for (const one of found) console.log(`     ${one}`)
  }
  const tarball = `${first.files.length} files, ${first.size} bytes, sha512 ${first.digest}`
  console.log(`\n${facts.manifest.name} ${version}: ${tarball}`)
  const publish = `git tag v${version} && git push origin v${version}\nnpm publish`
  const how = 'In the CI job that may sign for the repository (id-token: write):'
  console.log(wrong === 0 ? `${how}\n${publish}` : `not ready: ${wrong} to mend`)
  process.exitCode = wrong === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** `--ignore-scripts`, because it has been built once, above. */
function pack(): Packed & { readonly digest: string } {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const [packed] = Object.values(JSON.parse(run('npm', args))) as [Packed]
  const bytes = readFileSync(join(folder, packed.filename))
  return { ...packed, digest: createHash('sha512').update(bytes).digest('hex') }
}

function read(name: string): string {
  return readFileSync(join(top, name), 'utf8')
}

function run(program: string, args: readonly string[]): string {
  return execFileSync(program, args, { cwd: top, encoding: 'utf8', maxBuffer: 2 ** 26 })
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}
