/**
 * A stream of bytes as lines, holding one line at a time however long the stream is. A line over
 * the bound is read past and told as a mistake, so a file without line ends cannot fill the memory.
 */

export type Line =
  | { readonly number: number; readonly text: string }
  | { readonly number: number; readonly mistake: string }

/** Lines counted from 1. The last one needs no line end. */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array>,
  bytes_max: number,
): AsyncGenerator<Line> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let parts: Uint8Array[] = []
  let bytes = 0
  let number = 0
  const take = (): Line => {
    const taken = parts
    const is_long = bytes > bytes_max
    parts = []
    bytes = 0
    number++
    if (is_long) return { number, mistake: `longer than ${bytes_max} bytes` }
    try {
      return { number, text: decoder.decode(taken.length === 1 ? taken[0] : Buffer.concat(taken)) }
    } catch {
      return { number, mistake: 'not UTF-8 text' }
    }
  }
  for await (const chunk of stream) {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(0x0a, from)
      const part = chunk.subarray(from, end === -1 ? chunk.length : end)
      bytes += part.length
      if (bytes > bytes_max) parts = []
      else parts.push(part)
      if (end === -1) break
      yield take()
      from = end + 1
    }
  }
  if (bytes > 0) yield take()
}
