/**
 * A run of the compiled tests over PostgreSQL (bin/test.ts): the server, the module that takes the
 * place of src/open.ts, and the table of the tests that are left out because they speak about the
 * files of the commit log, or do to a data file what a node answers otherwise.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Postgres, startPostgres } from './postgres.ts'
import { initPartition, openingText, type Suite, suite_file } from './postgres-open.ts'

/** Without a name it is the whole file; a name is how its text begins in the source. */
const left_out: readonly (readonly [because: string, file: string, ...names: string[]])[] = [
  ['it reads and breaks the segment files', 'commit-log-faults'],
  ['it reads and breaks the segment files', 'commit-log-foreign'],
  ['it reads and breaks the segment files', 'commit-log-order'],
  ['it reads and breaks the segment files', 'commit-log-refused'],
  ['it follows the writes of the segment files', 'sync-order'],
  ['the disk that is full or fails has the segment files', 'disk-faults'],
  ['it copies and restores files with their segments', 'restore'],
  ['a node without the key of the secrets does not own the data', 'key-file'],
  ['it sets data files back, and a node has the later state from the database', 'engine-secrets'],
  ['four of its incidents are of segment files and of lost keys', 'incidents'],
  [
    'the file may not grow, and a node commits elsewhere',
    'cli-serve',
    "'a failed write ends serve",
  ],
  ['it looks for the segment files', 'cli-serve', "'commits go into a commit log"],
  ['a node does not own the data without its key', 'cli', "'user rekey --forget-secrets asks"],
  ['a node does not own the data without its key', 'cli', "'a key from the environment"],
  ['a node does not own the data without its key', 'doctor', "'a served file: failed tasks"],
  ['it follows the frames into the segment files', 'reply-order'],
  ['a node tells of its role as well', 'line-sink', "'serve writes its last lines"],
  [
    'it counts on a store in memory: with a file it waits as well',
    'http-sync',
    "'answers that nobody",
  ],
  ['a node does not own the data without its key', 'outside', "'a key file that is missing'"],
  ['it removes a segment file', 'outside', "'a commit log that is lost'"],
  ['it copies the segment files', 'doctor', "'a file that a kill left"],
  ['a node does not own the data without its key', 'http-webhook', "'is sealed in the file"],
]

/** What `npm test` has as well, besides the vectors: lives of tasks, restarts, kills. */
export const quick_names = ['vectors', 'engine-flow', 'kill']

/** A server, with its folder in `parent`, for the compiled code in `folder`. */
export async function startSuite(
  folder: string,
  parent: string,
  is_quick: boolean,
): Promise<Postgres> {
  const settings = { max_connections: '500' }
  // No test here depends on what a power cut would leave.
  const postgres = await startPostgres({ settings, parent })
  await initPartition(postgres.url(), 0)
  const opening = join(folder, 'src/open.js')
  renameSync(opening, join(folder, 'src/open-file.js'))
  writeFileSync(opening, openingText('./open-file.js', '../test/support/postgres-open.js'))
  const suite: Suite = { url: postgres.url(), is_quick }
  writeFileSync(join(folder, 'test/support', suite_file), JSON.stringify(suite))
  skipLeftOut(folder)
  return postgres
}

/**
 * Whether a run over PostgreSQL has this test file: it opens data files, has no database of its own
 * to tell of, and is not left out.
 */
export function isInSuite(folder: string, name: string): boolean {
  if (left_out.some(([, file, ...names]) => file === name && names.length === 0)) return false
  const path = join(folder, 'test', `${name}.test.js`)
  return !readFileSync(path, 'utf8').includes("'./support/postgres.js'") && reaches(path, new Set())
}

/** Whether it imports, directly or not, what opens data files or builds programs that do. */
function reaches(path: string, seen: Set<string>): boolean {
  if (/[/\\](?:src[/\\]open|support[/\\]store-child)\.js$/.test(path)) return true
  if (seen.has(path)) return false
  seen.add(path)
  const found = readFileSync(path, 'utf8').matchAll(/(?:from |import\()'(\.[^']*\.js)'/g)
  return [...found].some(([, to = '']) => reaches(join(dirname(path), to), seen))
}

/** Skips the tests that are left out by name; throws for a name that is not there. */
function skipLeftOut(folder: string): void {
  for (const [because, file, ...names] of left_out) {
    const path = join(folder, 'test', `${file}.test.js`)
    let text = readFileSync(path, 'utf8')
    for (const name of names) {
      const calls = [`test(${name}`, `it(${name}`]
      const call = calls.find((one) => text.includes(one))
      if (call === undefined) throw new Error(`${file} has no test ${name} (${because})`)
      text = text.replace(call, () => call.replace('(', '.skip('))
    }
    writeFileSync(path, text)
  }
}
