/**
 * `npm test [-- NAME...]`: compiles src, bin and test once into `build/`, and runs the test files
 * there (all, or those named as in `timers` for test/timers.test.ts) under plain Node.
 *
 * A process that compiles as it loads spends twice the processor time of its start on that; the
 * tests start some two hundred processes and threads. Types are not checked here (`npm run types`).
 * After the run the events that all its engines have told are searched: kept-lines.ts.
 * `node --import tsx --test test/NAME.test.ts` runs one file without `build/`.
 *
 * `npm test -- --second-node` leaves out what another version of Node cannot change.
 * `npm run test:postgres [-- NAME...]` runs them over the commit log in PostgreSQL: what is opened
 * there is test/support/postgres-open.ts, in place of src/open.ts.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { documentedFields, keptLines, wrongIn } from '../test/support/kept-lines.ts'
import { newRun } from '../test/support/one-run.ts'
import { no_postgres, type Postgres } from '../test/support/postgres.ts'
import { isInSuite, quick_names, startSuite } from '../test/support/postgres-suite.ts'

/** More files at once than CI has cores, for some of them wait rather than work. */
const files_at_once = 3
/** Of a whole file, also on a machine that is busy. */
const test_ms_max = 300_000
/** What these try is the source, a disk, another program or PostgreSQL, whatever Node runs them. */
const same_on_each_node: readonly string[] = [
  ...['layers', 'vocabulary', 'public-service', 'readme', 'package', 'bundle', 'deploy-metrics'],
  ...['deploy-cluster', 'small-disk', 'serve-disk', 'shop', 'arm64'],
  ...['commit-log-recover', 'commit-log-faults', 'commit-log-answers', 'commit-log-port'],
  ...['cluster-node', 'cluster-serve', 'cluster-incidents', 'cluster-import', 'cluster-snapshot'],
  ...[
    'client-failover',
    'proofs',
    'proofs-crashes',
    'proofs-callers',
    'proofs-time',
    'dependencies',
  ],
]

const top = fileURLToPath(new URL('..', import.meta.url))
const build = join(top, 'build')
const page = join(top, 'src/console/page')

compile()
const { CONVEYOR_SLOW: is_slow } = process.env
const words = process.argv.slice(2)
const names = words.filter((word) => !word.startsWith('--'))
const is_over_postgres = words.includes('--postgres')
const is_second_node = words.includes('--second-node')
const all = readdirSync(join(build, 'test'))
  .filter((file) => file.endsWith('.test.js'))
  .map((file) => file.slice(0, -'.test.js'.length))
const given = all.filter((name) => {
  if (is_second_node) return !same_on_each_node.includes(name)
  return !is_over_postgres || isInSuite(build, name)
})
const chosen = names.length === 0 ? given : all.filter((name) => names.includes(name))
// This reporter tells the failed tests once more at the end.
const flags = [
  '--test',
  '--test-reporter=spec',
  `--test-concurrency=${is_slow === undefined ? files_at_once : 1}`,
]
if (is_slow === undefined) flags.push(`--test-timeout=${test_ms_max}`)
const paths = chosen.map((name) => `build/test/${name}.test.js`)
const run = newRun()
const postgres = await overPostgres()
const lines_folder = join(run.folder, 'lines')
mkdirSync(lines_folder)
process.exitCode = await run.node([...flags, ...paths], {
  ...process.env,
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --require "${build}/test/support/keep-lines.cjs"`,
  CONVEYOR_KEPT_LINES: lines_folder,
})
if (!areLinesRight(lines_folder)) process.exitCode = 1
await postgres?.remove()
run.end()

/** Whether no event of the whole run has told data, a secret or a signature. */
function areLinesRight(folder: string): boolean {
  const documented = documentedFields(readFileSync(join(top, 'src/core/events.md'), 'utf8'))
  const lines = keptLines(folder)
  const wrong = wrongIn(lines, documented)
  console.log(`${lines.length} events of the run searched`)
  for (const sentence of wrong.slice(0, 20)) console.error(`the log tells ${sentence}`)
  return wrong.length === 0
}

/** Of the whole run, or of the part of it that runs once more over PostgreSQL where it is there. */
async function overPostgres(): Promise<Postgres | undefined> {
  if (is_over_postgres) {
    if (no_postgres !== undefined) throw new Error(no_postgres)
    return startSuite(build, run.quick_folder, false)
  }
  if (names.length > 0 || is_second_node) return undefined
  if (no_postgres !== undefined) {
    console.log(`no tests over PostgreSQL: ${no_postgres}`)
    return undefined
  }
  const copy = join(build, 'postgres')
  for (const folder of ['bin', 'src', 'test']) {
    cpSync(join(build, folder), join(copy, folder), { recursive: true })
  }
  paths.unshift(...quick_names.map((name) => `build/postgres/test/${name}.test.js`))
  return startSuite(copy, run.quick_folder, true)
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
      filter: (path) => path !== page && (statSync(path).isDirectory() || !path.endsWith('.ts')),
    })
  }
  const built = join(build, 'src/console/page/built')
  execFileSync(process.execPath, ['--import', 'tsx', 'bin/page.ts', built], { cwd: top })
}
