/**
 * Judges what a power cut left of the file of the servers' work: it opens, everything that was
 * answered before the cut is there, no request is there in part, `check` finds nothing, and users
 * can be added, which takes the key of the secrets.
 *
 * Most images hold one of few states, so the engine looks at each state once, in the first image
 * that has it. Every image is opened, read to its last entry, and closed, which writes what was in
 * the commit log into LMDB; every fourth is then opened again, and must hold the same.
 */
import { createHash, type Hash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openEngine } from '../../src/open.ts'
import { manifest_key } from '../../src/store/commit-log/manifest.ts'
import { openCommitLogTree } from '../../src/store/commit-log/open.ts'
import { openLmdbTree } from '../../src/store/lmdb/open.ts'
import type { Tree } from '../../src/store/tree.ts'
import { judgeLanes } from './lane-judge.ts'
import { lane_processes } from './lanes.ts'
import type { Folder } from './power-disk.ts'
import type { ServerTrace } from './power-server.ts'

/** What is in a state, however much of it was answered. */
interface Found {
  /** By lane, how many of its requests are there. */
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

const reopened_every = 4
const is_whole = JSON.stringify({ lost: [], half: [], strange: [], breaches: [], double: [] })
/** Of no file: each that is judged had its own or none. */
const no_id = Buffer.alloc(8)

export function newPowerJudge(folder: string, { lanes, ready_at }: ServerTrace): PowerJudge {
  const images = new Map<string, Found>()
  const states = new Map<string, Found>()
  const path = join(folder, 'db')
  const own_lanes = lanes.map(({ lane }) => ({ ...lane, acked: 0 }))

  function put(image: Folder): void {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    for (const [name, bytes] of image) writeFileSync(join(folder, name), bytes, { mode: 0o600 })
  }

  async function find(image: Folder): Promise<Found> {
    put(image)
    const tree = await openTree(path)
    const state = stateOf(tree, image)
    await tree.close()
    if (existsSync(`${path}-log-0`)) throw new Error('the close has left the commit log')
    if (images.size % reopened_every === 0) {
      const again = await openTree(path)
      if (stateOf(again, image) !== state) throw new Error('the close has changed what is there')
      await again.close()
    }
    const known = states.get(state)
    if (known !== undefined) return known
    put(image)
    const found = await findInState()
    states.set(state, found)
    return found
  }

  async function findInState(): Promise<Found> {
    const engine = await openEngine(path, { timers: false })
    try {
      const processes = await engine.processes.list()
      const users = await engine.users.list()
      const has_setup = processes.length === lane_processes.length && users.length > 0
      for (const definition of lane_processes) await engine.putProcess(definition)
      const { verdict, there } = await judgeLanes(engine, own_lanes)
      await engine.users.add()
      const says = JSON.stringify(verdict)
      return {
        there: own_lanes.map((lane) => there.get(lane) ?? 0),
        has_setup,
        ...(says === is_whole ? {} : { wrong: says }),
      }
    } finally {
      await engine.close()
    }
  }

  return {
    async judge(image, line) {
      const digest = digestOf(image)
      let found = images.get(digest)
      if (found === undefined) {
        found = await find(image).catch((error: Error) => ({
          ...{ there: [], has_setup: false, wrong: `it cannot be used: ${error.message}` },
        }))
        images.set(digest, found)
      }
      if (found.wrong !== undefined) return found.wrong
      if (!found.has_setup && ready_at <= line) return 'the processes and the user are lost'
      const lost = lanes.flatMap(({ lane, answered_at }, at) => {
        const answered = answered_at.filter((answered_line) => answered_line <= line).length
        const there = found.there[at] ?? 0
        return there < answered ? [`${lane.name}: ${answered} answered, ${there} there`] : []
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
  const tree = await openLmdbTree(path, { not_copied: [manifest_key] })
  try {
    return await openCommitLogTree(tree, path, { id: no_id })
  } catch (error) {
    await tree.close()
    throw error
  }
}

/** All entries, and the files that are not the store's. */
function stateOf(tree: Tree, image: Folder): string {
  const hash = createHash('sha1')
  for (const { key, value } of tree.range('', '\xff', false)) {
    hash.update(`${key.length} ${key} ${value.length} `, 'latin1').update(value)
  }
  for (const [name, bytes] of image) if (!/^db(-log-\d|-sums)?$/.test(name)) add(hash, name, bytes)
  return hash.digest('base64')
}

function digestOf(image: Folder): string {
  const hash = createHash('sha1')
  for (const [name, bytes] of [...image].toSorted()) add(hash, name, bytes)
  return hash.digest('base64')
}

function add(hash: Hash, name: string, bytes: Buffer): void {
  hash.update(`${name} ${bytes.length} `).update(bytes)
}
