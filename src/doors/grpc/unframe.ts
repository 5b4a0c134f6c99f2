/**
 * The messages in the bytes of a call: gRPC puts a flag and a length of four bytes before each. A
 * message is handed on when it is whole, as a part of the bytes it came in where it can be.
 */

export interface Frame {
  readonly message: Buffer
  readonly is_compressed: boolean
}

/**
 * What takes the bytes as they come, in pieces of any length, and answers the messages that are
 * whole with them. Throws a RangeError once a message tells of more than `bytes_max`.
 */
export function newUnframe(bytes_max: number): (chunk: Buffer) => Frame[] {
  /** The beginning of a message that is not whole. */
  let parts: Buffer[] = []
  let held = 0
  /** So many bytes are needed to go on. */
  let needed = head_bytes

  return (chunk) => {
    addPart(parts, chunk)
    held += chunk.length
    const frames: Frame[] = []
    if (held < needed) return frames
    const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, held)
    let at = 0
    needed = head_bytes
    while (bytes.length - at >= head_bytes) {
      const length = bytes.readUInt32BE(at + 1)
      if (length > bytes_max) {
        throw new RangeError(`Received message larger than max (${length} vs ${bytes_max})`)
      }
      const end = at + head_bytes + length
      if (end > bytes.length) {
        needed = end - at
        break
      }
      const message = bytes.subarray(at + head_bytes, end)
      frames.push({ message, is_compressed: bytes[at] === 1 })
      at = end
    }
    held = bytes.length - at
    parts = held === 0 ? [] : [bytes.subarray(at)]
    return frames
  }
}

const head_bytes = 5

/** Smaller parts are put together, or a message sent byte by byte would be as many buffers. */
const small_bytes = 4096

function addPart(parts: Buffer[], chunk: Buffer): void {
  let last = chunk
  // Only where it at least doubles what it is put behind, so each byte is copied a few times.
  for (let before = parts.at(-1); before !== undefined; before = parts.at(-1)) {
    if (last.length >= small_bytes || last.length < before.length) break
    parts.pop()
    last = Buffer.concat([before, last])
  }
  parts.push(last)
}
