/**
 * Judges what a power cut left of the file of the servers' work: it opens, everything that was
 * answered before the cut is there, no request is there in part, `check` finds nothing, and users
 * can be added, which takes the key of the secrets.
 *
 * Each image is opened and closed, which writes what was in the commit log into LMDB, and opened
 * again, where it must hold the same. Most images hold one of few states: the engine looks at each
 * state, which is all entries, in the first image that has it.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openEngine } from '../../../src/open.ts'
import { copy_mark } from '../../../src/store/commit-log/log-mark.ts'
import { openCommitLogTree } from '../../../src/store/commit-log/open.ts'
import type { Tree } from '../../../src/store/tree.ts'
import { openInProcess } from '../in-process-tree.ts'
import { workload_processes } from '../workload.ts'
import { judgeWorkload, wrongBy } from '../workload-judge.ts'
import type { Folder } from './power-disk.ts'
import type { ServerTrace } from './power-server.ts'

/** By name, a digest of what a file holds. */
type Digests = ReadonlyMap<string, string>

/** What is in a state, however much of it was answered. */
interface Found {
  /** By sequence, how many of its requests are there. */
  readonly there: readonly number[]
  readonly has_setup: boolean
  /** What is wrong with it. */
  readonly wrong?: string
}

interface PowerJudge {
  /** What is wrong with an image after a cut at this line, or nothing. */
  judge(image: Folder, line: number): Promise<string | undefined>
  readonly images: ReadonlySet<string>
  readonly states: ReadonlySet<string>
}

/** Of no file: each that is judged had its own or none. */
const no_id = Buffer.alloc(8)

export function newPowerJudge(folder: string, { sequences, ready_at }: ServerTrace): PowerJudge {
  const images = new Map<string, Found>()
  const states = new Map<string, Found>()
  const path = join(folder, 'db')
  const own_sequences = sequences.map(({ sequence }) => ({ ...sequence, acked: 0 }))

  function put(image: Folder): void {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    for (const [name, bytes] of image) writeFileSync(join(folder, name), bytes, { mode: 0o600 })
  }

  async function find(image: Folder, digests: Digests): Promise<Found> {
    put(image)
    const state = await readAndClose(digests)
    if (existsSync(`${path}-log-0`)) throw new Error('the close has left the commit log')
    if ((await readAndClose(digests)) !== state)
      throw new Error('the close has changed what is there')
    const known = states.get(state)
    if (known !== undefined) return known
    put(image)
    const found = await findInState()
    states.set(state, found)
    return found
  }

  /** All entries, and the files that are not the store's. */
  async function readAndClose(digests: Digests): Promise<string> {
    const tree = await openTree(path)
    try {
      return digestOf(tree, othersIn(digests))
    } finally {
      await tree.close()
    }
  }

  async function findInState(): Promise<Found> {
    const engine = await openEngine(path, { background: false })
    try {
      const processes = await engine.processes.list()
      const users = await engine.users.list()
      const has_setup = processes.length === workload_processes.length && users.length > 0
      for (const definition of workload_processes) await engine.processes.put(definition)
      const { verdict, there } = await judgeWorkload(engine, own_sequences)
      await engine.users.add()
      const wrong = wrongBy({ ...verdict })
      return {
        there: own_sequences.map((sequence) => there.get(sequence) ?? 0),
        has_setup,
        ...(wrong !== undefined && { wrong }),
      }
    } finally {
      await engine.close()
    }
  }

  return {
    async judge(image, line) {
      const digests = digestsOf(image)
      const digest = sha1(JSON.stringify([...digests]))
      let found = images.get(digest)
      if (found === undefined) {
        found = await find(image, digests).catch((error: Error) => ({
          ...{ there: [], has_setup: false, wrong: `it cannot be used: ${error.message}` },
        }))
        images.set(digest, found)
      }
      if (found.wrong !== undefined) return found.wrong
      if (!found.has_setup && ready_at <= line) return 'the processes and the user are lost'
      const lost = sequences.flatMap(({ sequence, answered_at }, at) => {
        const answered = answered_at.filter((answered_line) => answered_line <= line).length
        const there = found.there[at] ?? 0
        return there < answered ? [`${sequence.name}: ${answered} answered, ${there} there`] : []
      })
      return lost.length === 0 ? undefined : `lost: ${lost.join('; ')}`
    },
    get images() {
      return new Set(images.keys())
    },
    get states() {
      return new Set(states.keys())
    },
  }
}

async function openTree(path: string): Promise<Tree> {
  const tree = await openInProcess(path, { backup_mark: copy_mark })
  try {
    return await openCommitLogTree(tree, path, { id: no_id })
  } catch (error) {
    await tree.close()
    throw error
  }
}

const sha1 = (bytes: Buffer | string): string => createHash('sha1').update(bytes).digest('base64')

const digestsOf = (image: Folder): Digests =>
  new Map([...image.keys()].toSorted().map((name) => [name, sha1(image.get(name) as Buffer)]))

const othersIn = (digests: Digests): string =>
  JSON.stringify([...digests].filter(([name]) => !/^db(-log-\d)?$/.test(name)))

const digest_bytes = 64 * 1024

function digestOf(tree: Pick<Tree, 'range'>, others: string): string {
  const hash = createHash('sha1').update(others)
  const bytes = Buffer.allocUnsafe(2 * digest_bytes)
  let at = 0
  for (const { key, value } of tree.range('', '\xff', false)) {
    const is_long = value.length > digest_bytes
    if (is_long || at > digest_bytes / 2) {
      hash.update(bytes.subarray(0, at))
      at = 0
    }
    at = bytes.writeUInt32LE(value.length, bytes.writeUInt32LE(key.length, at))
    at += bytes.write(key, at, 'latin1')
    if (is_long) {
      hash.update(bytes.subarray(0, at)).update(value)
      at = 0
    } else {
      bytes.set(value, at)
      at += value.length
    }
  }
  return hash.update(bytes.subarray(0, at)).digest('base64')
}
