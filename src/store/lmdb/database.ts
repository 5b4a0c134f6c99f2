/**
 * Opens LMDB, and puts a commit's changes as buffers or slices of one arena, without an object per
 * change. The package loads at the first open: an engine in memory does not need it.
 */
import type { RootDatabase, RootDatabaseOptions } from 'lmdb'
import type { Key } from '../../codec/keys.ts'
import type { KeyBytes } from '../changes/change-encoding.ts'
import { fileFault } from '../disk/file-system.ts'
import { nativeFault } from '../disk/native-part.ts'
import type { LmdbWriter } from './lmdb-tree.ts'

export interface LmdbOptions extends RootDatabaseOptions {
  readonly permissionsMode: number
  readonly safeRestore: boolean
  readonly eventTurnBatching: boolean
  readonly batchStartThreshold: number
}

export type LmdbDatabase = RootDatabase<Buffer, Key>

/** lmdb-js reads `start` and `end` of a binary. */
type ByteSlice = Buffer & { start: number; end: number }

function sliceOf(arena: Buffer): ByteSlice {
  return Object.assign(Buffer.from(arena.buffer), { start: 0, end: 0 })
}

function writeKey(key: Key | ByteSlice, target: Uint8Array & KeyBytes, at: number): number {
  if (typeof key === 'string') return at + target.latin1Write(key, at)
  const { start, end } = key
  for (let from = start; from < end; from++) target[at + from - start] = key[from] as number
  return at + end - start
}

export const lmdbOptions: LmdbOptions = {
  noSubdir: true,
  // With it, commits would be acknowledged before their sync, and a power cut could lose them.
  overlappingSync: false,
  encoding: 'binary',
  keyEncoder: {
    writeKey,
    readKey: (source: KeyBytes, from: number, to: number) => source.latin1Slice(from, to),
  },
  // A batch is its own commit. An event turn's batch around it would have a second promise, whose
  // rejection is unhandled.
  eventTurnBatching: false,
  // A batch starts when complete, so that an aborted one writes nothing.
  batchStartThreshold: Number.MAX_SAFE_INTEGER,
  cache: false,
  compression: false,
  maxDbs: 1,
  maxReaders: 126,
  permissionsMode: 0o600,
  safeRestore: false,
}

/** Throws `native_not_loaded`. */
export async function loadLmdb(): Promise<Pick<typeof import('lmdb'), 'open'>> {
  try {
    return await import('lmdb')
  } catch (error) {
    throw nativeFault('lmdb', error)
  }
}

/** Throws `not_possible`. Crashes the process for a file that is not LMDB's (see lmdb/open). */
export async function openDatabase(
  path: string,
  options: Pick<RootDatabaseOptions, 'maxReaders' | 'readOnly'> = {},
): Promise<LmdbDatabase> {
  const { open } = await loadLmdb()
  try {
    return open<Buffer, Key>(path, { ...lmdbOptions, ...options })
  } catch (error) {
    throw fileFault(path, error)
  }
}

export interface LmdbStats {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
  readonly entryCount: number
  readonly lastPageNumber: number
}

export function statsOf(db: LmdbDatabase): LmdbStats {
  return db.getStats() as LmdbStats
}

export interface ReusableWriter extends LmdbWriter {
  /** After a commit: drops the reference to its arena. */
  release(): void
}

const nothing: Buffer = Buffer.alloc(0)

/**
 * LMDB copies a key at the put, but reads a value at the commit by its address, so the writer keeps
 * the slice's buffer alive until then.
 */
export function newWriter(db: LmdbDatabase): ReusableWriter {
  const by_slice = db as unknown as RootDatabase<Buffer, ByteSlice>
  let last_arena: Buffer = nothing
  let key = sliceOf(nothing)
  let value = sliceOf(nothing)

  function use(arena: Buffer): void {
    last_arena = arena
    key = sliceOf(arena)
    value = sliceOf(arena)
  }

  return {
    put(name, bytes) {
      if (bytes === null) void db.remove(name)
      else void db.put(name, bytes)
    },
    putSlice(arena, key_from, key_bytes, value_bytes) {
      if (last_arena !== arena) use(arena)
      key.start = arena.byteOffset + key_from
      key.end = key.start + key_bytes
      if (value_bytes < 0) return void by_slice.remove(key)
      value.start = key.end
      value.end = value.start + value_bytes
      void by_slice.put(key, value)
    },
    release() {
      if (last_arena !== nothing) use(nothing)
    },
  }
}
