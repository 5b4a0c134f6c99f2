/**
 * What goes into one commit of LMDB: changes by name, or as parts of larger bytes, for which
 * nothing is made that a garbage collector would have to look at.
 *
 * LMDB copies a key as it is put. Of a value it notes the address and reads it as it writes; until
 * then it holds the bytes that the value is a part of, which must stay as they are.
 */
import type { RootDatabase } from 'lmdb'
import type { Key } from '../../codec/keys.ts'
import { type ByteSlice, type LmdbDatabase, sliceOf } from './options.ts'

export interface Transaction {
  put(key: Key, value: Buffer | null): void
  /** The value stands right behind its key in `room`; -1 bytes of it delete the key. */
  putSlice(room: Buffer, key_from: number, key_bytes: number, value_bytes: number): void
}

/** Synchronous, and no more than a row of calls. */
export type Fill = (batch: Transaction) => void

export interface OwnBatch extends Transaction {
  /** The commit has ended: so that a room is not kept for nothing. */
  letGo(): void
}

const nothing: Buffer = Buffer.alloc(0)

export function newBatch(db: LmdbDatabase): OwnBatch {
  const by_part = db as unknown as RootDatabase<Buffer, ByteSlice>
  let last_room: Buffer = nothing
  let key = sliceOf(nothing)
  let value = sliceOf(nothing)

  function use(room: Buffer): void {
    last_room = room
    key = sliceOf(room)
    value = sliceOf(room)
  }

  return {
    put(name, bytes) {
      if (bytes === null) void db.remove(name)
      else void db.put(name, bytes)
    },
    putSlice(room, key_from, key_bytes, value_bytes) {
      if (last_room !== room) use(room)
      key.start = room.byteOffset + key_from
      key.end = key.start + key_bytes
      if (value_bytes < 0) return void by_part.remove(key)
      value.start = key.end
      value.end = value.start + value_bytes
      void by_part.put(key, value)
    },
    letGo() {
      if (last_room !== nothing) use(nothing)
    },
  }
}
