/**
 * The manifest: which frames are in LMDB. It is a value in LMDB that commits with the changes of a
 * checkpoint.
 *
 *     0  id of the commit log (8)
 *     8  sequence number of the last frame whose changes are all in LMDB (8)
 *    16  1 if the commit log must exist, 0 after a clean close with its files (1)
 *    17  crc32 of the last of these frames (4); missing before the first
 */
import { type Key, metaKey } from '../../codec/keys.ts'
import { commit_log_id_bytes } from './frame.ts'

export interface Manifest {
  readonly id: Buffer
  readonly seq: number
  readonly is_open: boolean
  /** Distinguishes frames of the same number after a commit log was set back. */
  readonly last_crc?: number | undefined
}

export const manifest_key: Key = metaKey('log')

/** Which backup target continues with this file (backups/ownership); most files have none. */
export const backup_mark_key: Key = metaKey('backup')

const crc_at = commit_log_id_bytes + 9

export function encodeManifest({ id, seq, is_open, last_crc }: Manifest): Buffer {
  const out = Buffer.alloc(last_crc === undefined ? crc_at : crc_at + 4)
  out.set(id)
  out.writeBigUInt64BE(BigInt(seq), commit_log_id_bytes)
  out[commit_log_id_bytes + 8] = is_open ? 1 : 0
  if (last_crc !== undefined) out.writeUInt32BE(last_crc, crc_at)
  return out
}

export function decodeManifest(bytes: Buffer): Manifest {
  return {
    id: Buffer.from(bytes.subarray(0, commit_log_id_bytes)),
    seq: Number(bytes.readBigUInt64BE(commit_log_id_bytes)),
    is_open: bytes[commit_log_id_bytes + 8] === 1,
    ...(bytes.length > crc_at ? { last_crc: bytes.readUInt32BE(crc_at) } : {}),
  }
}
