/**
 * Compiles src, bin and test once into `build/`, and runs the test files there under plain Node:
 *
 *     npm test                   in-process tests, vectors on three transports, the command line
 *     npm run test:rest          the other kinds, see `kinds`
 *     npm run test:all           both
 *     npm test -- NAME...        those named, as in `timers` for test/timers.test.ts
 *     npm test -- --second-node  what another version of Node can change
 *     npm run test:postgres      over the commit log in PostgreSQL: test/support/postgres-open.ts
 *
 * The tests start some two hundred processes and threads; one that compiles as it loads takes twice
 * the processor time to start. Types are not checked here (`npm run types`). After the run the
 * events that all its engines have logged are searched: kept-lines.ts.
 * `node --import tsx --test test/NAME.test.ts` runs one file without `build/`.
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

interface Kind {
  /** Whether another version of Node can change what they find. */
  readonly is_of_node: boolean
  readonly files: readonly string[]
}

/** What `npm test` leaves out, because it takes minutes or needs a program from outside. */
const kinds: Readonly<Record<string, Kind>> = {
  proofs: {
    is_of_node: false,
    files: ['proofs', 'proofs-crashes', 'proofs-callers', 'proofs-time', 'disk-faults'],
  },
  crashes: {
    is_of_node: true,
    files: [
      ...['kill', 'restart', 'restore', 'rot', 'torn-file', 'side-files', 'snapshot', 'lock'],
      ...['commit-log-foreign', 'commit-log-killed', 'commit-log-order', 'commit-log-trouble'],
      ...['incidents', 'outside', 'reply-order', 'sync-order', 'drafts-killed', 'limits-killed'],
    ],
  },
  log_faults: {
    is_of_node: false,
    files: ['commit-log-recover', 'commit-log-faults', 'commit-log-answers', 'commit-log-port'],
  },
  hostile: {
    is_of_node: true,
    files: [
      ...['http-hostile', 'grpc-hostile', 'grpc-receive', 'unread-answers', 'connection-bounds'],
      ...['rate-limit', 'replay-bounds', 'http-webhook', 'loading', 'import-slices', 'scale'],
    ],
  },
  cluster: {
    is_of_node: false,
    files: [
      ...['cluster-node', 'cluster-serve', 'cluster-incidents', 'cluster-import', 'deploy-cluster'],
      ...['cluster-snapshot', 'client-failover'],
    ],
  },
  postgres: {
    is_of_node: true,
    files: [
      ...[
        'cluster-takeover',
        'cluster-rescue',
        'cluster-reads',
        'postgres-server',
        'store-postgres',
      ],
      ...['database-errors', 'db-call', 'db-call-mysql', 'hand-over'],
    ],
  },
  browser: {
    is_of_node: true,
    files: [
      ...['console-reach', 'console-process', 'console-browser', 'console-mending'],
      ...['console-breaks', 'console-hostile', 'console-pictures', 'browser-checks'],
    ],
  },
  package: {
    is_of_node: false,
    files: [...['package', 'bundle', 'dependencies', 'readme', 'deploy-metrics', 'arm64', 'shop']],
  },
  programs: {
    is_of_node: true,
    files: [
      'native-files',
      'deploy',
      'grpc-clients',
      'clients',
      'client-trouble',
      'cli-grpc',
      'smoke',
    ],
  },
}

const top = fileURLToPath(new URL('..', import.meta.url))
const build = join(top, 'build')
const page = join(top, 'src/console/page')

compile()
const { CONVEYOR_SLOW: is_slow } = process.env
const words = process.argv.slice(2)
const names = words.filter((word) => !word.startsWith('--'))
const is_over_postgres = words.includes('--postgres')
const all = readdirSync(join(build, 'test'))
  .filter((file) => file.endsWith('.test.js'))
  .map((file) => file.slice(0, -'.test.js'.length))
const missing = Object.values(kinds).flatMap(({ files }) =>
  files.filter((name) => !all.includes(name)),
)
if (missing.length > 0) throw new Error(`no such test files: ${missing.join(', ')}`)
const given = all.filter((name) => {
  if (is_over_postgres) return isInSuite(build, name)
  const kind = kindOf(name)
  if (kind !== undefined && words.includes('--second-node')) return kind.is_of_node
  return words.includes('--all') || (kind !== undefined) === words.includes('--rest')
})
const chosen = names.length === 0 ? given : all.filter((name) => names.includes(name))
// This reporter repeats the failed tests at the end.
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

/** Undefined for those of `npm test`. */
function kindOf(name: string): Kind | undefined {
  return Object.values(kinds).find(({ files }) => files.includes(name))
}

/** Whether no event of the whole run has data, a secret or a signature. */
function areLinesRight(folder: string): boolean {
  const documented = documentedFields(readFileSync(join(top, 'src/core/events.md'), 'utf8'))
  const lines = keptLines(folder)
  const wrong = wrongIn(lines, documented)
  console.log(`${lines.length} events of the run searched`)
  for (const sentence of wrong.slice(0, 20)) console.error(`the log has ${sentence}`)
  return wrong.length === 0
}

/** Of the whole run, or of the part of it that runs once more over PostgreSQL where it is there. */
async function overPostgres(): Promise<Postgres | undefined> {
  if (is_over_postgres) {
    if (no_postgres !== undefined) throw new Error(no_postgres)
    return startSuite(build, run.quick_folder, false)
  }
  if (names.length > 0 || !['--all', '--rest'].some((word) => words.includes(word)))
    return undefined
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
