/**
 * Data files with a log as a process that died has left them: made to order, group by group, with
 * all that each group should have left, so that an opening can be held against it.
 *
 * Group `n` writes its number under `last`, so a state tells which one it is, and under a key of its
 * own; all else of it goes to keys that other groups write and delete too, so that half a group
 * shows.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type ChangeBuffer, changesOf } from '../../src/store/change-buffer.ts'
import { openLmdbTree } from '../../src/store/lmdb/open.ts'
import type { LmdbTree } from '../../src/store/lmdb/tree.ts'
import { runCheckpoint } from '../../src/store/log/checkpoint.ts'
import { encodeManifest, type Manifest, manifest_key } from '../../src/store/log/manifest.ts'
import { openLogTree } from '../../src/store/log/open.ts'
import { segmentPaths } from '../../src/store/log/recovery.ts'
import type { LogBounds } from '../../src/store/log/tree.ts'
import { createLog, type LogWriter } from '../../src/store/log/writer.ts'
import type { Tree } from '../../src/store/tree.ts'

export type State = ReadonlyMap<string, string>
/** By end of the name (nothing for the data file itself), what the files of one store hold. */
export type Image = ReadonlyMap<string, Buffer>

export const log_id = Buffer.alloc(8, 7)
/** Merges begin with every group, are of many commits, and soon have callers wait for them. */
export const tiny_bounds: LogBounds = {
  checkpoint_bytes: 1,
  bytes_max: 20_000,
  slice: { changes_max: 3, bytes_max: 1_000 },
}
const no_slice = { changes_max: 3, bytes_max: 1_000 }
const ends = ['', '-log-0', '-log-1'] as const

/** What group `n` writes; the same for every run. */
export function groupOf(n: number): ChangeBuffer {
  const writes = new Map<string, Buffer | null>([
    ['last', Buffer.from(String(n))],
    [`only ${n}`, Buffer.from(String(n))],
  ])
  for (let part = 0; part < 5; part++) {
    const chance = (n * 7919 + part * 104_729) % 1009
    const key = `key ${chance % 23}`
    writes.set(key, chance % 4 === 0 ? null : Buffer.alloc(chance % 400, `${n}.${part} `))
  }
  return changesOf(writes)
}

/** What is there after groups 1 to `n`; without any there is no `last`. */
export function stateAfter(n: number): State {
  const state = new Map<string, string>()
  for (let group = 1; group <= n; group++) {
    for (const [key, value] of groupOf(group)) {
      if (value === null) state.delete(key)
      else state.set(key, value.toString('latin1'))
    }
  }
  return state
}

/** Commits directly to LMDB, as a file without a log does. */
export function putInto(tree: LmdbTree, changes: Iterable<readonly [string, Buffer | null]>): void {
  tree.commit((writer) => {
    for (const [key, value] of changes) writer.put(key, value)
  })
}

function putManifest(tree: LmdbTree, manifest: Manifest): void {
  putInto(tree, new Map([[manifest_key, encodeManifest(manifest)]]))
}

/** All that a tree holds for others than its log. */
export function stateOf(tree: Pick<Tree, 'range'>): State {
  const state = new Map<string, string>()
  for (const { key, value } of tree.range('', '\xff', false)) {
    if (key !== manifest_key) state.set(key, value.toString('latin1'))
  }
  return state
}

export function lastOf(state: State): number {
  return Number(state.get('last') ?? 0)
}

/** Fails where a state is not that of its last group, or that is not between the two. */
export function assertState(state: State, from: number, to = from, what = ''): void {
  const last = lastOf(state)
  assert.ok(last >= from && last <= to, `${what}: group ${last}, not ${from} to ${to}`)
  assert.deepEqual(state, stateAfter(last), `${what}: group ${last} is not as it was`)
}

export function openTree(path: string): Promise<LmdbTree> {
  return openLmdbTree(path, { not_copied: [manifest_key] })
}

/** The n-th commit and all behind it fail, that one with nothing written or with all of it. */
export function breaking(below: LmdbTree, n: number, writes_all: boolean): LmdbTree {
  let asked = 0
  return {
    ...below,
    commit(fill) {
      asked++
      if (asked < n) return below.commit(fill)
      if (asked === n && writes_all) below.commit(fill)
      throw new Error('the disk is broken')
    },
  }
}

export async function openLogged(
  path: string,
  bounds: Partial<LogBounds> = {},
  over = (tree: LmdbTree): LmdbTree => tree,
): Promise<Tree> {
  const tree = await openTree(path)
  try {
    return await openLogTree(over(tree), path, { id: log_id, bounds })
  } catch (error) {
    await tree.close()
    throw error
  }
}

/** The state that an opening finds, and behind its close the data file alone. */
export async function foldedState(path: string): Promise<State> {
  const tree = await openLogged(path)
  const state = stateOf(tree)
  await tree.close()
  for (const segment of segmentPaths(path)) assert.ok(!existsSync(segment), `${segment} is left`)
  const below = await openTree(path)
  assert.deepEqual(stateOf(below), state, 'what was folded in is another')
  await below.close()
  return state
}

/**
 * What the three files hold at one moment, also while a thread writes them: read until they are the
 * same twice. A file that is not there is not in it.
 */
export function imageOf(path: string): Image {
  let image = readOnce(path)
  for (;;) {
    const again = readOnce(path)
    if (isSame(image, again)) return image
    image = again
  }
}

function readOnce(path: string): Image {
  const image = new Map<string, Buffer>()
  for (const end of ends) if (existsSync(path + end)) image.set(end, readFileSync(path + end))
  return image
}

export function isSame(one: Image, other: Image): boolean {
  return ends.every((end) => {
    const [mine, theirs] = [one.get(end), other.get(end)]
    return mine === undefined || theirs === undefined ? mine === theirs : mine.equals(theirs)
  })
}

/** Puts the files of an image, and no others, where a store is or was. */
export function layDown(image: Image, path: string): void {
  for (const end of [...ends, '-lock']) rmSync(path + end, { force: true })
  for (const [end, bytes] of image) writeFileSync(path + end, bytes, { mode: 0o600 })
}

/** A copy with one file changed, or taken away where `change` answers nothing. */
export function changed(
  image: Image,
  end: string,
  change: (bytes: Buffer) => Buffer | undefined,
): Image {
  const copy = new Map(image)
  const bytes = change(Buffer.from(image.get(end) ?? Buffer.alloc(0)))
  if (bytes === undefined) copy.delete(end)
  else copy.set(end, bytes)
  return copy
}

/** Refused with a code and a sentence that names the file, and nothing was touched. */
export async function assertRefused(
  path: string,
  image: Image,
  code: string,
  what: string,
): Promise<void> {
  layDown(image, path)
  await assert.rejects(foldedState(path), (error: { code?: string; message?: string }) => {
    assert.equal(error.code, code, what)
    assert.ok(error.message?.includes(path), `${what}: ${error.message}`)
    return true
  })
  assert.ok(isSame(imageOf(path), image), `${what}: the files were changed`)
}

export async function assertOpens(
  path: string,
  image: Image,
  group: number,
  what: string,
): Promise<void> {
  layDown(image, path)
  assertState(await foldedState(path), group, group, what)
}

/** Where the frame of a group stands. */
export interface Place {
  readonly end: string
  readonly at: number
  readonly bytes: number
}

export interface DiedBed {
  readonly image: Image
  /** By number of the group. */
  readonly places: ReadonlyMap<number, Place>
  readonly groups: number
}

/**
 * `commit` writes the next group; `turn` goes on in the other segment; `merge` brings the old one
 * into the tree, and `slices` only a part of it.
 */
export type DiedStep = 'commit' | 'turn' | 'merge' | 'slices'

export interface DiedOptions {
  readonly id?: Buffer
  /** Groups that were folded in before the log was begun, in a log of their own. */
  readonly folded?: number
}

/** Makes a file whose process died behind the last step. */
export async function died(
  path: string,
  steps: readonly DiedStep[],
  options: DiedOptions = {},
): Promise<DiedBed> {
  const { id = log_id, folded = 0 } = options
  layDown(new Map(), path)
  const tree = await openTree(path)
  if (folded > 0) {
    let writes = new Map<string, Buffer | null>()
    for (let n = 1; n <= folded; n++) writes = new Map([...writes, ...groupOf(n)])
    putInto(tree, writes)
    putManifest(tree, { id, seq: folded, is_open: false })
  }
  const log = await createLog(path, { id, seq: folded, is_open: false })
  putManifest(tree, { id, seq: folded, is_open: true })
  const bed = { tree, log, id, path, young: 0, groups: folded, places: new Map<number, Place>() }
  await takeSteps(bed, steps)
  await log.close()
  await tree.close()
  return { image: imageOf(path), places: bed.places, groups: bed.groups }
}

interface Making {
  readonly tree: LmdbTree
  readonly log: LogWriter
  readonly id: Buffer
  readonly path: string
  young: number
  groups: number
  readonly places: Map<number, Place>
}

async function takeSteps(bed: Making, steps: readonly DiedStep[]): Promise<void> {
  const { tree, log, places } = bed
  for (const step of steps) {
    if (step === 'commit') {
      const at = log.active().bytes()
      await log.write(groupOf(++bed.groups))
      const bytes = log.active().bytes() - at
      places.set(bed.groups, { end: `-log-${bed.young}`, at, bytes })
    } else if (step === 'turn') {
      log.rotate()
      bed.young = 1 - bed.young
    } else {
      const written = log.frozenFrames()
      const manifest: Manifest = { id: bed.id, seq: written.last_seq, is_open: true }
      const job = { written, manifest, slice: no_slice }
      if (step === 'merge') {
        runCheckpoint(tree, job)
        log.releaseFrozen()
      } else {
        try {
          runCheckpoint(breaking(tree, 3, false), job)
        } catch {}
      }
    }
  }
}

export const commits = (count: number): DiedStep[] => new Array<DiedStep>(count).fill('commit')
