/**
 * The changes of one transaction as the value of its change key:
 *
 *     version (1) = 2
 *     the time of the transaction, ms (8, double); never before that of the entry before
 *     bytes of all entries before this one, since the file was made (8, double)
 *     for each task that was written, in order:
 *       status (bits 0 to 2), has a ref (bit 3), place (bits 4 to 7)
 *       with place 15: conv, node, each with an end as in keys
 *       which of the 12 bytes of its id differ from those of the task before (2), and these
       if there is a ref, its length (1, or 2 with the highest bit set) and text
 *
 * A place is a process and a node. The first 15 of an entry are written once: where place 15 comes
 * for the first, second … time, the task is in place 0, 1 … from there on. Before the first task
 * stands an id of zeros; bit 0 of two bytes means the first byte.
 */
import type { Status } from '../core/model.ts'
import { idBytes } from './ids.ts'
import { part, readPart, text } from './keys.ts'
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

const version = 2
const head_bytes = 17
const id_bytes = 12
/** Of a task, beside the texts: the first byte, its id, the length of its ref. */
const fixed_bytes = 1 + 2 + id_bytes + 2
const no_id = '\x00'.repeat(id_bytes)
/** A longer ref may have more than 127 bytes. */
const short_ref_max = 42
const ref_flag = 8
const new_place = 15

export function newChangeWriter(): ChangeWriter {
  let entry = Buffer.allocUnsafeSlow(16 * 1024)
  let end = head_bytes
  const convs: string[] = new Array<string>(new_place).fill('')
  const nodes: string[] = new Array<string>(new_place).fill('')
  let places = 0
  let last_id = no_id

  function placeOf(conv_id: string, node_id: string): number {
    let place = places - 1
    while (place >= 0 && (nodes[place] !== node_id || convs[place] !== conv_id)) place--
    return place
  }

  function reserve(more: number): void {
    if (end + more <= entry.length) return
    const larger = Buffer.allocUnsafeSlow(2 * (end + more))
    entry.copy(larger, 0, 0, end)
    entry = larger
  }

  return {
    clear() {
      end = head_bytes
      places = 0
      last_id = no_id
    },
    isEmpty: () => end === head_bytes,
    add({ conv_id, node_id, obj_id, ref, status }) {
      const ref_text = ref === undefined ? '' : ref.text
      const place = placeOf(conv_id, node_id)
      const name = place >= 0 ? '' : part(conv_id) + part(node_id)
      // A UTF-16 unit takes at most 3 bytes.
      reserve(fixed_bytes + name.length + 3 * ref_text.length)
      const to = entry
      let at = end
      const flags = statuses.indexOf(status) | (ref === undefined ? 0 : ref_flag)
      to[at++] = flags | ((place >= 0 ? place : new_place) << 4)
      if (place < 0) {
        at += to.write(name, at, 'latin1')
        if (places < new_place) {
          convs[places] = conv_id
          nodes[places++] = node_id
        }
      }
      const id = idBytes(obj_id)
      const differs_at = at
      let differs = 0
      at += 2
      for (let n = 0; n < id_bytes; n++) {
        if (id.charCodeAt(n) === last_id.charCodeAt(n)) continue
        differs |= 1 << n
        to[at++] = id.charCodeAt(n)
      }
      to[differs_at] = differs >> 8
      to[differs_at + 1] = differs
      last_id = id
      if (ref !== undefined) {
        const length_bytes = ref_text.length > short_ref_max ? 2 : 1
        const ref_bytes = to.write(ref_text, at + length_bytes)
        if (length_bytes === 2) to[at++] = 128 | (ref_bytes >> 8)
        to[at++] = ref_bytes
        at += ref_bytes
      }
      end = at
    },
    entry(at_ms, bytes_before) {
      entry[0] = version
      entry.writeDoubleBE(at_ms, 1)
      entry.writeDoubleBE(bytes_before, 9)
      return entry.subarray(0, end)
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
  const id = Buffer.alloc(id_bytes)
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
    const differs = all.charCodeAt(at) * 256 + all.charCodeAt(at + 1)
    at += 2
    for (let n = 0; n < id_bytes; n++) if (differs & (1 << n)) id[n] = all.charCodeAt(at++)
    const obj_id = id.toString('hex')
    let ref: string | null = null
    if (flags & ref_flag) {
      let ref_bytes = all.charCodeAt(at++)
      if (ref_bytes >= 128) ref_bytes = (ref_bytes - 128) * 256 + all.charCodeAt(at++)
      ref = text(all.slice(at, at + ref_bytes))
      at += ref_bytes
    }
    const status = statuses[flags & 7]
    if (place === undefined || status === undefined || !(at <= all.length)) {
      throw new Error('a change entry is damaged')
    }
    changes.push({ ...place, obj_id, ref, status })
  }
  return changes
}
