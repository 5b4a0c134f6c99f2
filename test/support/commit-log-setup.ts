/**
 * Data files with a commit log as a crashed process leaves them, made to order, and the state that
 * an open must find in them.
 *
 * Group `n` writes its number under `last` and under a key of its own, and changes keys that other
 * groups write and delete too, so that a group that is there in part shows.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Emit } from '../../src/core/events.ts'
import { type ChangeBuffer, changesOf } from '../../src/store/changes/change-buffer.ts'
import type { CommitLogBounds } from '../../src/store/commit-log/bounds.ts'
import { runWriteJob } from '../../src/store/commit-log/checkpoint.ts'
import { copy_mark } from '../../src/store/commit-log/log-mark.ts'
import { encodeManifest, type Manifest, manifest_key } from '../../src/store/commit-log/manifest.ts'
import { openCommitLogTree } from '../../src/store/commit-log/open.ts'
import {
  knownLog,
  recoverCommitLog,
  recoveredView,
  segmentPaths,
} from '../../src/store/commit-log/recovery.ts'
import { createCommitLog } from '../../src/store/commit-log/segments.ts'
import type { CommitLogWriter } from '../../src/store/commit-log/writer.ts'
import { openDataFile } from '../../src/store/data-file.ts'
import { lockFile } from '../../src/store/disk/file-lock.ts'
import type { LmdbTree } from '../../src/store/lmdb/lmdb-tree.ts'
import type { Tree } from '../../src/store/tree.ts'
import { type InProcessTree, inProcess, openInProcess } from './in-process-tree.ts'

export type State = ReadonlyMap<string, string>
/** The files of one store by suffix of the name; the suffix of the data file is empty. */
export type Image = ReadonlyMap<string, Buffer>

export const commit_log_id = Buffer.alloc(8, 7)
/** A checkpoint starts with every group, has many commits, and soon makes callers wait. */
export const tiny_bounds: CommitLogBounds = {
  checkpoint_bytes: 1,
  bytes_max: 20_000,
  slice: { changes_max: 3, bytes_max: 1_000 },
}
const no_slice = { changes_max: 3, bytes_max: 1_000 }
const ends = ['', '-log-0', '-log-1'] as const

/** The changes of group `n`, the same in every run. */
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

/** The state after groups 1 to `n`. */
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

/** Commits directly to LMDB, as a file without a commit log does. */
export function putInto(
  tree: InProcessTree,
  changes: Iterable<readonly [string, Buffer | null]>,
): void {
  tree.commit((writer) => {
    for (const [key, value] of changes) writer.put(key, value)
  })
}

function putManifest(tree: InProcessTree, manifest: Manifest): void {
  putInto(tree, new Map([[manifest_key, encodeManifest(manifest)]]))
}

/** The entries of a tree without the manifest. */
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

/** Asserts that a state is that of its last group, which is between `from` and `to`. */
export function assertState(state: State, from: number, to = from, what = ''): void {
  const last = lastOf(state)
  assert.ok(last >= from && last <= to, `${what}: group ${last}, not ${from} to ${to}`)
  assert.deepEqual(state, stateAfter(last), `${what}: group ${last} is not as it was`)
}

export function openTree(path: string): Promise<InProcessTree> {
  return openInProcess(path, { backup_mark: copy_mark })
}

/** The n-th commit and all later ones fail; the n-th writes nothing or everything. */
export function failingAt(below: InProcessTree, n: number, writes_all: boolean): InProcessTree {
  let asked = 0
  return inProcess({
    ...below,
    commit(fill) {
      asked++
      if (asked < n) return below.commit(fill)
      if (asked === n && writes_all) below.commit(fill)
      throw new Error('the disk is broken')
    },
  })
}

let opened = 0

export interface CommitLogOpening {
  readonly over?: (tree: InProcessTree) => LmdbTree
  readonly emit?: Emit
}

export async function openWithCommitLog(
  path: string,
  bounds: Partial<CommitLogBounds> = {},
  { over = (tree) => tree, emit }: CommitLogOpening = {},
): Promise<Tree> {
  const tree = await openTree(path)
  try {
    // A copy must not go on under the id of the file that it was made of.
    const id = Buffer.concat([commit_log_id.subarray(1), Buffer.from([opened++ % 256])])
    return await openCommitLogTree(over(tree), path, { id, bounds, emit })
  } catch (error) {
    await tree.close()
    throw error
  }
}

/** As an engine does it, with writes in a process of their own. */
export async function openAsEngine(
  path: string,
  bounds: Partial<CommitLogBounds> = {},
  emit?: Emit,
): Promise<Tree> {
  const lock = await lockFile(path)
  assert.ok(lock !== undefined, `${path} is held`)
  const below = await openDataFile(path, { lock_fd: lock.fd })
  try {
    const tree = await openCommitLogTree(below, path, { id: commit_log_id, bounds, emit })
    return { ...tree, close: () => tree.close().finally(lock.release) }
  } catch (error) {
    await below.close().finally(lock.release)
    throw error
  }
}

/** The state that an open finds; the close must leave the data file alone with the same. */
export async function closedState(path: string): Promise<State> {
  const tree = await openWithCommitLog(path)
  const state = stateOf(tree)
  await tree.close()
  for (const segment of segmentPaths(path)) assert.ok(!existsSync(segment), `${segment} is left`)
  assert.deepEqual(await stateAlone(path), state, 'the close changed the state')
  return state
}

/** What the data file of a closed store has without any other. */
export async function stateAlone(path: string): Promise<State> {
  const below = await openTree(path)
  try {
    const known = await knownLog(below, path)
    assert.equal(known?.state, 'closed')
    return stateOf(recoveredView(below, await recoverCommitLog(path, known)))
  } finally {
    await below.close()
  }
}

/**
 * What the three files hold at one moment, also while a process writes them: read until they are the
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

/** Replaces the files of a store by those of the image. */
export function writeImage(image: Image, path: string): void {
  for (const end of [...ends, '-lock']) rmSync(path + end, { force: true })
  for (const [end, bytes] of image) writeFileSync(path + end, bytes, { mode: 0o600 })
}

/** A copy with one file changed, or removed if `change` returns undefined. */
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

/** Asserts a refusal with this code and a sentence that names the file, and unchanged files. */
export async function assertRefused(
  path: string,
  image: Image,
  code: string,
  what: string,
): Promise<void> {
  writeImage(image, path)
  await assert.rejects(closedState(path), (error: { code?: string; message?: string }) => {
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
  writeImage(image, path)
  assertState(await closedState(path), group, group, what)
}

/** The position of a group's frame. */
export interface FramePosition {
  readonly end: string
  readonly at: number
  readonly bytes: number
}

export interface CrashedFile {
  readonly image: Image
  /** By number of the group. */
  readonly places: ReadonlyMap<number, FramePosition>
  readonly groups: number
}

/** `commit` writes the next group; `part of a checkpoint` fails after a few commits of LMDB. */
export type CrashStep = 'commit' | 'rotate' | 'checkpoint' | 'part of a checkpoint'

export interface CrashedOptions {
  readonly id?: Buffer
  /** Groups that an earlier commit log of the file had, which was closed. */
  readonly merged_groups?: number
}

/** Makes a file whose process crashed after the last step. */
export async function crashed(
  path: string,
  steps: readonly CrashStep[],
  options: CrashedOptions = {},
): Promise<CrashedFile> {
  const { id = commit_log_id, merged_groups = 0 } = options
  writeImage(new Map(), path)
  const tree = await openTree(path)
  if (merged_groups > 0) {
    let writes = new Map<string, Buffer | null>()
    for (let n = 1; n <= merged_groups; n++) writes = new Map([...writes, ...groupOf(n)])
    putInto(tree, writes)
    putManifest(tree, { id, seq: merged_groups, is_open: false })
  }
  const commit_log = await createCommitLog(path, { id, seq: merged_groups, is_open: false })
  putManifest(tree, { id, seq: merged_groups, is_open: true })
  const file = {
    tree,
    commit_log,
    id,
    path,
    active: 0,
    groups: merged_groups,
    places: new Map<number, FramePosition>(),
  }
  await takeSteps(file, steps)
  await commit_log.close()
  await tree.close()
  return { image: imageOf(path), places: file.places, groups: file.groups }
}

interface Making {
  readonly tree: InProcessTree
  readonly commit_log: CommitLogWriter
  readonly id: Buffer
  readonly path: string
  active: number
  groups: number
  readonly places: Map<number, FramePosition>
}

async function takeSteps(file: Making, steps: readonly CrashStep[]): Promise<void> {
  const { tree, commit_log, places } = file
  for (const step of steps) {
    if (step === 'commit') {
      const at = commit_log.active().bytes()
      await commit_log.write(groupOf(++file.groups))
      const bytes = commit_log.active().bytes() - at
      places.set(file.groups, { end: `-log-${file.active}`, at, bytes })
    } else if (step === 'rotate') {
      commit_log.rotate()
      file.active = 1 - file.active
    } else {
      const { frames, ...seqs } = commit_log.frozenFrames()
      const manifest: Manifest = { id: file.id, seq: seqs.last_seq, is_open: true }
      const frames_of = { id: file.id, ...seqs }
      const job = {
        frames: [Buffer.from(frames)],
        commit_log: frames_of,
        manifest,
        slice: no_slice,
      }
      if (step === 'checkpoint') {
        runWriteJob(tree, job)
        commit_log.releaseFrozen()
      } else {
        try {
          runWriteJob(failingAt(tree, 3, false), job)
        } catch {}
      }
    }
  }
}

export const commits = (count: number): CrashStep[] => new Array<CrashStep>(count).fill('commit')
