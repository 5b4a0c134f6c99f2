/** The frames of HTTP/2 as bytes, and heads in the plainest form of HPACK. */

export const frame_types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
}

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Each header as a literal that is not indexed; names and values are under 127 bytes. */
export function headersBlock(pairs: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string): Buffer =>
    Buffer.concat([Buffer.from([value.length]), Buffer.from(value)])
  return Buffer.concat(
    pairs.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  )
}

/** What a client sends first. */
export const preface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(frame_types.settings, 0, 0, Buffer.alloc(0)),
])
