/** Ids of tasks: 24 hex digits to callers, 12 bytes in keys and values, one character each. */

export const id_bytes = 12

/** The id converted last, in both forms: an op builds several keys of the same task. */
let last_hex = ''
let last_bytes = ''

/** 24 hex digits to 12 bytes. */
export function idBytes(obj_id: string): string {
  if (obj_id !== last_hex) {
    last_bytes = obj_id.length === 2 * id_bytes ? bytesOf24(obj_id) : bytesOfHex(obj_id)
    last_hex = obj_id
  }
  return last_bytes
}

/** The first 24 digits, one by one, in a third of the time of a Buffer in between. */
export function bytesOf24(hex: string): string {
  return String.fromCharCode(
    byteAt(hex, 0),
    byteAt(hex, 2),
    byteAt(hex, 4),
    byteAt(hex, 6),
    byteAt(hex, 8),
    byteAt(hex, 10),
    byteAt(hex, 12),
    byteAt(hex, 14),
    byteAt(hex, 16),
    byteAt(hex, 18),
    byteAt(hex, 20),
    byteAt(hex, 22),
  )
}

function byteAt(hex: string, at: number): number {
  return ((digitAt(hex, at) << 4) | digitAt(hex, at + 1)) & 255
}

/** The letters begin at 0x41 and 0x61. */
function digitAt(hex: string, at: number): number {
  const char = hex.charCodeAt(at)
  return (char & 15) + (char >> 6) * 9
}

/** For text that is not a whole id, such as the end of a range. */
function bytesOfHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1', 0, id_bytes)
}

export function idHex(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('hex')
}

/** The hex digits of each byte. */
const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** The first part of the ids made last, in both forms. */
let last_head_hex = ''
let last_head_bytes = ''

/** A new id: 18 hex digits, then a number of 3 bytes. */
export function newId(head_hex: string, counter: number): string {
  if (head_hex !== last_head_hex) {
    last_head_bytes = bytesOfHex(head_hex)
    last_head_hex = head_hex
  }
  const [first, second, third] = [counter >>> 16, (counter >>> 8) & 255, counter & 255]
  last_bytes = last_head_bytes + String.fromCharCode(first, second, third)
  last_hex = head_hex + digits[first] + digits[second] + digits[third]
  return last_hex
}

const id_value = Buffer.alloc(id_bytes)

/** An id as the value of a key. The bytes are valid until the next call. */
export function idValue(obj_id: string): Buffer {
  id_value.write(idBytes(obj_id), 'latin1')
  return id_value
}

export function idOfValue(value: Buffer): string {
  last_hex = value.toString('hex')
  last_bytes = value.toString('latin1')
  return last_hex
}
