/**
 * One connection of the HTTP load: a raw socket, kept alive, one request under way on it. While the
 * clock runs, an answer costs one look at its length.
 *
 * The first answer is read whole and must be all `ok`. Since refs and ids have one length, the good
 * answers of a slot have one too: what is as long counts as good, and any other is read whole
 * again.
 */
import { once } from 'node:events'
import { connect } from 'node:net'

export interface Connection {
  send(request: Buffer): void
  destroy(): void
}

/** Shared by the connections of a slot. */
export interface Expected {
  /** Ops in each request. */
  readonly ops: number
  /** How long a good answer is; -1 before the first. */
  good_bytes: number
}

export interface Listener {
  onAnswer(connection: Connection): void
  /** The socket broke, or an answer was not good; nothing comes after it. */
  onError(error: unknown): void
}

export async function connectTo(
  port: number,
  expected: Expected,
  listener: Listener,
): Promise<Connection> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  const connection: Connection = {
    send: (request) => void socket.write(request),
    destroy: () => void socket.destroy(),
  }
  let chunks: Buffer[] = []
  let got_bytes = 0
  let whole_bytes = 0

  const onChunk = (chunk: Buffer): void => {
    const { good_bytes } = expected
    if (got_bytes === 0) whole_bytes = chunk.length === good_bytes ? good_bytes : wholeBytes(chunk)
    got_bytes += chunk.length
    chunks.push(chunk)
    if (got_bytes < whole_bytes) return
    if (got_bytes !== good_bytes) {
      checkAnswer(Buffer.concat(chunks), whole_bytes, expected.ops)
      expected.good_bytes = whole_bytes
    }
    chunks = []
    got_bytes = 0
  }
  socket.on('error', listener.onError)
  socket.on('end', () => listener.onError(new Error('the server closed a connection')))
  socket.on('data', (chunk) => {
    try {
      onChunk(chunk)
    } catch (error) {
      listener.onError(error)
      return
    }
    if (got_bytes === 0) listener.onAnswer(connection)
  })
  return connection
}

/** The whole length of the answer that begins with `chunk`. */
function wholeBytes(chunk: Buffer): number {
  const head_end = chunk.indexOf('\r\n\r\n')
  const [, length] = /content-length: (\d+)/i.exec(chunk.toString('latin1', 0, head_end)) ?? []
  if (head_end === -1 || length === undefined) throw new Error(`no head of an answer: ${chunk}`)
  return head_end + 4 + Number(length)
}

function checkAnswer(answer: Buffer, whole_bytes: number, ops: number): void {
  const text = answer.toString()
  const oks = text.split('"proc":"ok"').length - 1
  const is_good = text.startsWith('HTTP/1.1 200 ') && text.includes('{"request_proc":"ok"')
  if (is_good && oks === ops && answer.length === whole_bytes) return
  throw new Error(`not all ok: ${text.slice(0, 2_000)}`)
}
