/**
 * `npm test [-- NAME...]`: compiles src, bin and test once into `build/`, and runs the test files
 * there (all, or those named as in `crash` for test/crash.test.ts) under plain Node.
 *
 * A process that compiles as it loads spends twice the processor time of its start on that; the
 * tests start some two hundred processes and threads. Types are not checked here (`npm run types`).
 * After the run the events that all its engines have told are searched: kept-lines.ts.
 * `node --import tsx --test test/NAME.test.ts` runs one file without `build/`.
 *
 * `npm run test:postgres [-- NAME...]` runs them over the commit log in PostgreSQL: what is opened
 * there is test/support/postgres-open.ts, in place of src/open.ts.
 */
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { documentedFields, keptLines, wrongIn } from '../test/support/kept-lines.ts'
import { no_postgres, type Postgres, startPostgres } from '../test/support/postgres.ts'
import { initSuite } from '../test/support/postgres-open.ts'
import { quick_place } from '../test/support/store-folder.ts'

/** More files at once than CI has cores, for some of them wait rather than work. */
const files_at_once = 3
const test_ms_max = 120_000
/** These take longest and start first, so that no core waits for one of them at the end. */
const longest = [
  ...['vectors', 'commit-log-recover', 'power-cut', 'store-commit-log', 'package', 'model'],
  ...['shop', 'small-disk', 'serve-disk', 'http-hostile', 'crash-servers', 'readme', 'crash'],
  ...['commit-log-faults', 'restart', 'power-engine', 'restore', 'line-sink', 'crash-work'],
]

const top = fileURLToPath(new URL('..', import.meta.url))
const build = join(top, 'build')

/** What a run over PostgreSQL leaves out, and why. */
const left_out: readonly (readonly [reason: string, ...names: string[]])[] = [
  ['frames in the segment files', 'commit-log-faults'],
]

compile()
const { CONVEYOR_SLOW: is_slow } = process.env
const names = process.argv.slice(2).filter((word) => word !== '--postgres')
const is_over_postgres = process.argv.includes('--postgres')
const postgres = is_over_postgres ? await postgresFor(build) : undefined
const all = readdirSync(join(build, 'test'))
  .filter((file) => file.endsWith('.test.js'))
  .map((file) => file.slice(0, -'.test.js'.length))
const isLeftOut = (name: string): boolean =>
  is_over_postgres && left_out.some(([, ...ones]) => ones.includes(name))
const chosen = all.filter((name) => (names.length === 0 ? !isLeftOut(name) : names.includes(name)))
const files = chosen.toSorted((one, other) => rank(one) - rank(other))
// This reporter tells the failed tests once more at the end.
const flags = [
  '--test',
  '--test-reporter=spec',
  `--test-concurrency=${is_slow === undefined ? files_at_once : 1}`,
]
if (is_slow === undefined) flags.push(`--test-timeout=${test_ms_max}`)
const args = [...flags, ...files.map((name) => `build/test/${name}.test.js`)]
const lines_folder = mkdtempSync(join(tmpdir(), 'conveyor-lines-'))
const env = {
  ...process.env,
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --require "${build}/test/support/keep-lines.cjs"`,
  CONVEYOR_KEPT_LINES: lines_folder,
}
spawn(process.execPath, args, { cwd: top, stdio: 'inherit', env }).on('exit', (code) => {
  process.exitCode = code ?? 1
  if (!areLinesRight(lines_folder)) process.exitCode = 1
  rmSync(lines_folder, { recursive: true })
  void postgres?.remove()
})

/** Whether no event of the whole run has told data, a secret or a signature. */
function areLinesRight(folder: string): boolean {
  const documented = documentedFields(readFileSync(join(top, 'src/core/events.md'), 'utf8'))
  const lines = keptLines(folder)
  const wrong = wrongIn(lines, documented)
  console.log(`${lines.length} events of the run searched`)
  for (const sentence of wrong.slice(0, 20)) console.error(`the log tells ${sentence}`)
  return wrong.length === 0
}

function rank(name: string): number {
  return longest.includes(name) ? longest.indexOf(name) : longest.length
}

/** A server, in which the compiled tests of a folder have their commit logs from now on. */
async function postgresFor(folder: string): Promise<Postgres> {
  if (no_postgres !== undefined) throw new Error(no_postgres)
  const settings = { max_connections: '500' }
  // No test here depends on what a power cut would leave, so in memory where there is such a place.
  const postgres = await startPostgres({ settings, parent: quick_place })
  await initSuite(postgres.url(), folder)
  return postgres
}

/** What is no TypeScript is read by its place beside the code, so it is copied to the same place. */
function compile(): void {
  rmSync(build, { recursive: true, force: true })
  const compiler = join(top, 'node_modules/typescript/bin/tsc')
  const options = ['-p', top, '--noEmit', 'false', '--noCheck', '--outDir', build]
  execFileSync(process.execPath, [compiler, ...options], { stdio: 'inherit' })
  for (const folder of ['src', 'test']) {
    cpSync(join(top, folder), join(build, folder), {
      recursive: true,
      filter: (path) => statSync(path).isDirectory() || !path.endsWith('.ts'),
    })
  }
}
