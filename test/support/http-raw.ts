/**
 * An HTTP client that sends given bytes, so that tests can send what no library would. It reads
 * answers one by one, in order, by their Content-Length, which the server always sends.
 */
import { connect, type Socket } from 'node:net'
import { turns } from './store-trees.ts'

export interface Answer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface RawClient {
  readonly socket: Socket
  send(data: string | Uint8Array): void
  /** The next answer; rejects where the connection ends before it is whole. */
  answer(): Promise<Answer>
  /** Resolves when the other side has ended or reset; rejects where bytes are left unread. */
  ended(): Promise<void>
}

/**
 * Resolves once what was sent has been read: both ends are in this process, and what is sent over
 * loopback is there at once.
 */
export async function arrived(): Promise<void> {
  await turns(50)
}

/** `bodiless`: answers carry no body, as to HEAD. */
export async function connectRaw(port: number, bodiless = false): Promise<RawClient> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  let received = Buffer.alloc(0)
  let is_over = false
  let wake: (() => void) | undefined
  const note = (): void => {
    wake?.()
    wake = undefined
  }
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    note()
  })
  const over = (): void => {
    is_over = true
    note()
  }
  socket.on('end', over)
  socket.on('close', over)
  socket.on('error', () => {})
  const more = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve
    })
  await new Promise<void>((resolve) => socket.once('connect', resolve))

  return {
    socket,
    send(data) {
      if (!socket.destroyed) socket.write(data)
    },
    async answer() {
      for (;;) {
        const taken = takeAnswer(received, bodiless)
        if (taken !== undefined) {
          received = received.subarray(taken.bytes)
          return taken.answer
        }
        if (is_over) throw new Error(`ended with ${JSON.stringify(received.toString())}`)
        await more()
      }
    },
    async ended() {
      while (!is_over) await more()
      socket.destroy()
      if (received.length > 0) throw new Error(`left: ${received.toString()}`)
    },
  }
}

/** Sends, reads one answer and disconnects. */
export async function exchange(
  port: number,
  data: string | Uint8Array,
  bodiless = false,
): Promise<Answer> {
  const client = await connectRaw(port, bodiless)
  try {
    client.send(data)
    return await client.answer()
  } finally {
    client.socket.destroy()
  }
}

function takeAnswer(
  received: Buffer,
  bodiless: boolean,
): { answer: Answer; bytes: number } | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const [first = '', ...lines] = received.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(`${first} `)?.[1])
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const length = bodiless || status < 200 ? 0 : Number(headers['content-length'])
  const bytes = end + 4 + length
  if (received.length < bytes) return undefined
  return { answer: { status, headers, body: received.toString('utf8', end + 4, bytes) }, bytes }
}
