/**
 * One connection of the HTTP load client: a raw keep-alive socket with one request in flight.
 *
 * The first answer of a slot is parsed, and every result must be `ok`. All refs and ids have one
 * length, so good answers have one length too: an answer of that length is taken as good, any other
 * is parsed. While the clock runs, an answer therefore costs a comparison of its length.
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
  /** Length of a good answer; -1 before the first. */
  good_bytes: number
}

export interface Listener {
  onAnswer(connection: Connection): void
  /** The socket failed or an answer was bad; nothing follows. */
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

/** The length of the whole answer that starts with `chunk`. */
function wholeBytes(chunk: Buffer): number {
  const head_end = chunk.indexOf('\r\n\r\n')
  const [, length] = /content-length: (\d+)/i.exec(chunk.toString('latin1', 0, head_end)) ?? []
  if (head_end === -1 || length === undefined) throw new Error(`no complete answer head: ${chunk}`)
  return head_end + 4 + Number(length)
}

function checkAnswer(answer: Buffer, whole_bytes: number, ops: number): void {
  const text = answer.toString()
  const oks = text.split('"proc":"ok"').length - 1
  const is_good = text.startsWith('HTTP/1.1 200 ') && text.includes('{"request_proc":"ok"')
  if (is_good && oks === ops && answer.length === whole_bytes) return
  throw new Error(`not all ok: ${text.slice(0, 2_000)}`)
}
