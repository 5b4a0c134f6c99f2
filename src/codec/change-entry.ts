/**
 * The changes of one transaction as the value of its change key:
 *
 *     version (1) = 1
 *     the time of the transaction, ms (8, double); never before that of the entry before
 *     bytes of all entries before this one, since the file was made (8, double)
 *     for each task that was written, in order:
 *       status (bits 0 to 2), has a ref (bit 3), place (bits 4 to 7)
 *       with place 15: conv, node, each with an end as in keys
 *       task (12); length (2) and text of the ref, if there is one
 *
 * A place is a process and a node. The first 15 of an entry are written once: where place 15 comes
 * for the first, second … time, the task is in place 0, 1 … from there on.
 */
import type { Status } from '../core/model.ts'
import { bytes, idBytes, idHex, part, readPart, text, utf8 } from './keys.ts'
import { statuses, type TaskRecord } from './task-record.ts'

/** A task as a transaction has left it. */
export interface ChangedTask {
  readonly conv_id: string
  readonly obj_id: string
  readonly ref: string | null
  readonly status: Status
  readonly node_id: string
}

export interface EntryHead {
  readonly at_ms: number
  /** Of all entries before. */
  readonly bytes_before: number
}

/** Collects the changes of one transaction at a time. */
export interface ChangeWriter {
  clear(): void
  isEmpty(): boolean
  add(task: TaskRecord): void
  /** The bytes are valid until the next call. */
  entry(at_ms: number, bytes_before: number): Buffer
}

const version = 1
const head_bytes = 17
const id_bytes = 12
const ref_flag = 8
const new_place = 15

export function newChangeWriter(): ChangeWriter {
  /** Byte for byte one character each, as in a key. */
  let changes = ''
  const convs: string[] = new Array<string>(new_place).fill('')
  const nodes: string[] = new Array<string>(new_place).fill('')
  let places = 0
  let scratch = Buffer.allocUnsafeSlow(16 * 1024)

  return {
    clear() {
      changes = ''
      places = 0
    },
    isEmpty: () => changes === '',
    add({ conv_id, node_id, obj_id, ref, status }) {
      let place = places - 1
      while (place >= 0 && (nodes[place] !== node_id || convs[place] !== conv_id)) place--
      const flags = statuses.indexOf(status) | (ref === undefined ? 0 : ref_flag)
      if (place >= 0) changes += bytes[flags | (place << 4)]
      else {
        changes += (bytes[flags | (new_place << 4)] as string) + part(conv_id) + part(node_id)
        if (places < new_place) {
          convs[places] = conv_id
          nodes[places++] = node_id
        }
      }
      changes += idBytes(obj_id)
      if (ref === undefined) return
      const ref_bytes = utf8(ref.text)
      const { length } = ref_bytes
      changes += (bytes[length >> 8] as string) + bytes[length & 255] + ref_bytes
    },
    entry(at_ms, bytes_before) {
      const length = head_bytes + changes.length
      if (length > scratch.length) scratch = Buffer.allocUnsafeSlow(2 * length)
      scratch[0] = version
      scratch.writeDoubleBE(at_ms, 1)
      scratch.writeDoubleBE(bytes_before, 9)
      scratch.write(changes, head_bytes, 'latin1')
      return scratch.subarray(0, length)
    },
  }
}

/** Undefined for bytes that are too short for an entry. */
export function headOfEntry(entry: Buffer): EntryHead | undefined {
  if (entry.length < head_bytes) return undefined
  return { at_ms: entry.readDoubleBE(1), bytes_before: entry.readDoubleBE(9) }
}

/** The changes in order. Throws an error for bytes that are no entry. */
export function changesOfEntry(entry: Buffer): ChangedTask[] {
  if (entry[0] !== version) throw new Error('a change entry of another version')
  const changes: ChangedTask[] = []
  const places: { readonly conv_id: string; readonly node_id: string }[] = []
  const all = entry.toString('latin1')
  for (let at = head_bytes; at < all.length; ) {
    const flags = all.charCodeAt(at++)
    let place = places[flags >> 4]
    if (flags >> 4 === new_place) {
      const [conv_id, node_at] = readPart(all, at)
      const [node_id, end] = readPart(all, node_at)
      place = { conv_id, node_id }
      places.push(place)
      at = end
    }
    const obj_id = idHex(all.slice(at, at + id_bytes))
    at += id_bytes
    let ref: string | null = null
    if (flags & ref_flag) {
      const ref_at = at + 2
      at = ref_at + all.charCodeAt(at) * 256 + all.charCodeAt(at + 1)
      ref = text(all.slice(ref_at, at))
    }
    const status = statuses[flags & 7]
    if (place === undefined || status === undefined || at > all.length) {
      throw new Error('a change entry is damaged')
    }
    changes.push({ ...place, obj_id, ref, status })
  }
  return changes
}
