/**
 * How LMDB is opened for the engine's file. Nothing opens it for writing in another way.
 */
import type { RootDatabase, RootDatabaseOptions } from 'lmdb'
import type { Key } from '../bytes/keys.ts'
import type { KeyBytes } from './key-bytes.ts'

export interface LmdbOptions extends RootDatabaseOptions {
  readonly permissionsMode: number
  readonly safeRestore: boolean
  readonly eventTurnBatching: boolean
  readonly batchStartThreshold: number
}

export type LmdbDatabase = RootDatabase<Buffer, Key>

export const lmdbOptions: LmdbOptions = {
  noSubdir: true,
  // Answers would otherwise come before their sync, and a power cut could take them back.
  overlappingSync: false,
  encoding: 'binary',
  keyEncoder: {
    writeKey: (key: Key, target: KeyBytes, at: number) => at + target.latin1Write(key, at),
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
