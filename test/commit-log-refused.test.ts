/**
 * A commit log that does not belong to its file, as an operator meets it: each verb and the server
 * say what to do, exit with 3 and change nothing.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openEngine } from '../src/index.ts'
import { block_bytes } from '../src/store/commit-log/segment-file.ts'
import { run, tempFolder } from './support/cli-run.ts'

const folder = tempFolder()
after(() => folder.remove())

const golden = (name: string): Buffer =>
  gunzipSync(readFileSync(new URL(`./golden/${name}.gz`, import.meta.url)))
const ends = ['', '-log-0', '-log-1'] as const
const killed = () => new Map(ends.map((end) => [end as string, golden(`commit-log-killed${end}`)]))

/** What a name holds, and with it all files that are named after it but for LMDB's lock. */
function filesOf(path: string): Map<string, Buffer> {
  const names = readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)))
  return new Map(
    names
      .filter((name) => !name.endsWith('-lock'))
      .map((name) => [name.slice(basename(path).length), readFileSync(join(dirname(path), name))]),
  )
}

function lay(path: string, files: ReadonlyMap<string, Buffer>): void {
  for (const [end, bytes] of files) writeFileSync(path + end, bytes)
}

type Files = Map<string, Buffer>

/** The commit log goes on, into the file and beyond what it holds, and the file is put back. */
async function goOn(files: Files, path: string): Promise<void> {
  lay(path, files)
  await using engine = await openEngine(path)
  for (let round = 0; round < 3; round++) {
    await engine.create({ conv_id: 1234, data: {} })
    // A copy is of the data file, so the commit log is brought into that first.
    await engine.backup(`${path}.${round}`)
  }
  await engine.create({ conv_id: 1234, data: {} })
  for (const end of ['-log-0', '-log-1']) files.set(end, readFileSync(path + end))
}

const damage = (at: (bytes: Buffer) => number) => (files: Files) => {
  const segment = files.get('-log-0') as Buffer
  segment.writeUInt8(segment.readUInt8(at(segment)) ^ 3, at(segment))
}
const goes_with =
  /was copied without its commit log, .* put both beside it, or run `conveyor restore BACKUP( --db [^`]*)?`/
const other =
  /are the commit log of another file, or of another copy of .* put the three that go together/
const short = /the commit log of .* was cut short, .* run `conveyor restore BACKUP( --db [^`]*)?`/
const broken =
  /the commit log of .* is damaged in its middle, .* run `conveyor restore BACKUP( --db [^`]*)?`/

/** [what, the change to a good file with its commit log, the sentence] */
const rows: [string, (files: Files, path: string) => unknown, RegExp][] = [
  ['missing', (files) => files.delete('-log-0') && files.delete('-log-1'), goes_with],
  ['half missing', (files) => files.delete('-log-1'), goes_with],
  ['of another file', (files) => files.set('', golden('plain')), other],
  ['newer than its file', (files, path) => goOn(files, `${path}.later`), other],
  ['damaged in the middle', damage(() => block_bytes + 40), broken],
  ['cut short in the middle', (files) => cut(files, block_bytes + 40), short],
]

function cut(files: Files, bytes: number): void {
  files.set('-log-0', (files.get('-log-0') as Buffer).subarray(0, bytes))
}

describe('a commit log that is', () => {
  for (const [at, [what, change, says]] of rows.entries()) {
    test(`${what} is refused by every way in, and left as it is`, async () => {
      const path = join(folder.path, `${at}.lmdb`)
      const files = killed()
      await change(files, path)
      for (const argv of [['serve', '--http', 'off'], ['process', 'list'], ['check']]) {
        lay(path, files)
        const before = filesOf(path)
        const { exit, err } = await run([...argv, '--db', path])
        assert.equal(exit, 3, err)
        assert.match(err, says)
        assert.deepEqual(filesOf(path), before)
        rmSync(`${path}-lock`, { force: true })
      }
    })
  }
})
