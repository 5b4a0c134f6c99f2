/**
 * Opening: the log that was left is taken over as it is, or a new one started, and the tree says
 * that there is one and who has it now.
 */
import type { Key } from '../../codec/keys.ts'
import { newSheet } from '../change-buffer.ts'
import { fileFault } from '../file-system.ts'
import type { LmdbTree } from '../lmdb/tree.ts'
import type { Tree } from '../store.ts'
import { decodeManifest, encodeManifest, manifest_key } from './manifest.ts'
import { recoverLog } from './recovery.ts'
import type { OnNotice } from './segment-file.ts'
import { putInto, startLog } from './start.ts'
import { type LogBounds, logTree } from './tree.ts'
import { continueLog } from './writer.ts'

export interface LogOptions {
  /** 8 random bytes, for a file that never had a log. */
  readonly id: Buffer
  /** Written into the tree as it is opened; nobody else writes these keys. */
  readonly claim?: ReadonlyMap<Key, Buffer>
  /** Whether short commits may hold up this thread; true unless told. */
  readonly blocking?: boolean
  /** Told what the disk does not take, or that a merge waits for room. */
  readonly onNotice?: OnNotice
  /** Bytes of the disk that are left free where that can be; 0 unless told. */
  readonly reserve_bytes?: number
  readonly bounds?: Partial<LogBounds>
}

/**
 * Opens the log before the tree of the data file at `path`; closing folds it in. Rejects with
 * `not_possible` or `not_a_database` and a sentence that says what to do, and has then changed
 * nothing. Nobody else may have the file.
 */
export async function openLogTree(
  tree: LmdbTree,
  path: string,
  options: LogOptions,
): Promise<Tree> {
  const stored = tree.get(manifest_key)
  const known = stored === undefined ? undefined : decodeManifest(stored)
  const found = await recoverLog(path, known)
  const head = known ?? { id: options.id, seq: 0, is_open: false }
  const how = { ...options, onNotice: once(options.onNotice) }
  const log =
    found === undefined
      ? await startLog(tree, path, head, how)
      : await continueLog(path, head, found, how)
  try {
    const claim = new Map(options.claim)
    // A full disk can do without a word that is there already.
    const is_known = [...claim.keys()].every((key) => tree.get(key) !== undefined)
    const is_new = found === undefined && log !== undefined
    if (is_new) claim.set(manifest_key, encodeManifest({ ...head, is_open: true }))
    if (!writeInto(tree, claim) && (is_new || !is_known)) throw fileFault(path, { code: 'ENOSPC' })
  } catch (error) {
    await log?.close()
    throw error
  }
  return logTree(tree, path, head, log, how)
}

function writeInto(tree: LmdbTree, writes: ReadonlyMap<Key, Buffer>): boolean {
  if (writes.size === 0) return true
  const sheet = newSheet()
  for (const [key, value] of writes) sheet.put(key, value)
  return putInto(tree, sheet)
}

/** Tells each sentence once. */
function once(onNotice: OnNotice = () => {}): OnNotice {
  const told = new Set<string>()
  return (sentence) => {
    if (!told.has(sentence)) onNotice(sentence)
    told.add(sentence)
  }
}
