/**
 * Judges what a power cut left of the file of the servers' work: it opens, everything that was
 * answered before the cut is there, no request is there in part, `check` finds nothing, and users
 * can be added, which takes the key of the secrets.
 *
 * Most images hold one of few states. Of every image LMDB is opened and read to its last entry, and
 * its commit log is recovered; where two images agree in all that this has found, the rest of the
 * open does the same with both. So each find is then opened whole, read, and closed, which writes
 * what was in the commit log into LMDB, and opened again, where it must hold the same; and so is
 * every sixteenth image, whatever was found in it. The engine looks at each state, that is all
 * entries, in the first image that has it.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openEngine } from '../../../src/open.ts'
import { copy_mark } from '../../../src/store/commit-log/log-mark.ts'
import { manifest_key } from '../../../src/store/commit-log/manifest.ts'
import { openCommitLogTree } from '../../../src/store/commit-log/open.ts'
import { knownLog, recoverCommitLog } from '../../../src/store/commit-log/recovery.ts'
import type { FileUsage } from '../../../src/store/lmdb/lmdb-tree.ts'
import type { Tree } from '../../../src/store/tree.ts'
import { openInProcess } from '../in-process-tree.ts'
import { workload_processes } from '../workload.ts'
import { judgeWorkload, wrongBy } from '../workload-judge.ts'
import type { Folder } from './power-disk.ts'
import { type Digests, newImageFolder } from './power-folder.ts'
import type { ServerTrace } from './power-server.ts'

/** What is in a state, however much of it was answered. */
interface Found {
  /** By sequence, how many of its requests are there. */
  readonly there: readonly number[]
  readonly has_setup: boolean
  /** What is wrong with it. */
  readonly wrong?: string
}

export interface PowerJudge {
  /** What is wrong with an image after a cut at this line, or nothing. */
  judge(image: Folder, line: number): Promise<string | undefined>
  readonly images: ReadonlySet<string>
  readonly states: ReadonlySet<string>
}

const whole_every = 16
/** Of no file: each that is judged had its own or none. */
const no_id = Buffer.alloc(8)

export function newPowerJudge(folder: string, { sequences, ready_at }: ServerTrace): PowerJudge {
  const images = new Map<string, Found>()
  const finds = new Map<string, Found>()
  const states = new Map<string, Found>()
  const path = join(folder, 'db')
  const own_sequences = sequences.map(({ sequence }) => ({ ...sequence, acked: 0 }))
  const first_look = newFirstLook(`${folder}-first`)

  function put(image: Folder): void {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    for (const [name, bytes] of image) writeFileSync(join(folder, name), bytes, { mode: 0o600 })
  }

  async function find(image: Folder, digests: Digests): Promise<Found> {
    const find = await first_look.find(image, digests)
    const seen = finds.get(find)
    if (seen !== undefined && images.size % whole_every !== 0) return seen
    const found = await findWhole(image, digests)
    finds.set(find, found)
    return found
  }

  async function findWhole(image: Folder, digests: Digests): Promise<Found> {
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
      const digests = first_look.take(image)
      const digest = createHash('sha1')
        .update(JSON.stringify([...digests]))
        .digest('base64')
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

/** What LMDB finds in an image. */
interface Below {
  readonly digest: string
  readonly usage: FileUsage
  readonly manifest: Buffer | undefined
}

/** What LMDB and the recovery of the commit log find in an image, each in its files alone. */
function newFirstLook(folder: string) {
  const files = newImageFolder(folder)
  const path = join(folder, 'db')
  const below = new Map<string, Below>()
  const recovered = new Map<string, string>()

  async function lookBelow(image: Folder): Promise<Below> {
    files.put()
    rmSync(`${path}-lock`, { force: true })
    const { length = 0 } = image.get('db') ?? {}
    try {
      const tree = await openInProcess(path, { backup_mark: copy_mark })
      try {
        const manifest = tree.get(manifest_key)
        return { digest: digestOf(tree, ''), usage: tree.usage(), manifest }
      } finally {
        await tree.close()
      }
    } finally {
      // It begins anew a file that was hardly begun.
      if (length <= begun_bytes_max || statSync(path).size !== length) files.forget()
    }
  }

  async function recover(image: Folder, { manifest, usage }: Below): Promise<string> {
    files.put()
    const tree = { get: () => manifest, usage: () => usage }
    const known = image.has('db') ? await knownLog(tree, path) : undefined
    const segments = await recoverCommitLog(path, known)
    const hash = createHash('sha1')
    for (const { bytes, frames } of segments ?? []) {
      hash.update(`${bytes.length} of ${frames.length} `)
      for (const frame of frames) hash.update(`${frame.seq} ${frame.at} `).update(frame.bytes)
    }
    const left =
      segments === undefined ? [...image.keys()].filter((name) => /-log-/.test(name)) : []
    return `${hash.digest('base64')} ${left}`
  }

  return {
    take: files.take,
    async find(image: Folder, digests: Digests): Promise<string> {
      const db = digests.get('db') ?? ''
      const segments = ['db-log-0', 'db-log-1'].map((name) => digests.get(name))
      const entries = below.get(db) ?? (await lookBelow(image))
      below.set(db, entries)
      // The data file has a part of the commit log too: its record, and what the last close left.
      const in_segments = `${segments} ${db}`
      const frames = recovered.get(in_segments) ?? (await recover(image, entries))
      recovered.set(in_segments, frames)
      return `${entries.digest} ${frames} ${othersIn(digests)}`
    },
  }
}

/** LMDB begins a file with two pages. */
const begun_bytes_max = 2 * 4096

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
