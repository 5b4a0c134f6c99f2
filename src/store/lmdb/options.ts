/**
 * How LMDB is opened for the engine's file. Nothing opens it for writing in another way.
 */
import type { RootDatabase, RootDatabaseOptions } from 'lmdb'
import type { Key } from '../../codec/keys.ts'
import type { KeyBytes } from '../key-bytes.ts'

export interface LmdbOptions extends RootDatabaseOptions {
  readonly permissionsMode: number
  readonly safeRestore: boolean
  readonly eventTurnBatching: boolean
  readonly batchStartThreshold: number
}

export type LmdbDatabase = RootDatabase<Buffer, Key>

/** A key or a value that is a part of larger bytes. LMDB knows the two names as we do. */
export type ByteSlice = Buffer & { start: number; end: number }

/** For parts of all the memory that `room` is in. */
export function sliceOf(room: Buffer): ByteSlice {
  return Object.assign(Buffer.from(room.buffer), { start: 0, end: 0 })
}

function writeKey(key: Key | ByteSlice, target: Uint8Array & KeyBytes, at: number): number {
  if (typeof key === 'string') return at + target.latin1Write(key, at)
  const { start, end } = key
  for (let from = start; from < end; from++) target[at + from - start] = key[from] as number
  return at + end - start
}

export const lmdbOptions: LmdbOptions = {
  noSubdir: true,
  // Answers would otherwise come before their sync, and a power cut could take them back.
  overlappingSync: false,
  encoding: 'binary',
  keyEncoder: {
    writeKey,
    readKey: (source: KeyBytes, from: number, to: number) => source.latin1Slice(from, to),
  },
  // A batch is its own commit. In a turn's batch around it there would be a second promise, which
  // nobody holds and which is rejected too.
  eventTurnBatching: false,
  // A batch starts when it is complete, so that one that breaks off in between writes nothing.
  batchStartThreshold: Number.MAX_SAFE_INTEGER,
  cache: false,
  compression: false,
  maxDbs: 1,
  maxReaders: 126,
  permissionsMode: 0o600,
  safeRestore: false,
}
