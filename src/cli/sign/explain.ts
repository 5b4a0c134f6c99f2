/**
 * Each step of both signatures of a request, as a value and as text for people, and a test vector
 * against which an implementation can be checked; server/http/README.md shows its text. The secret
 * is shown as *** unless it is that of the vector.
 */
import { type Signed, type Signer, signed } from '../../client/http-messages.ts'
import { shellWord } from '../program.ts'
import { clean, columns } from '../text.ts'

interface Parts {
  readonly signer: Pick<Signer, 'user' | 'secret'>
  readonly timestamp: string
  readonly body: Buffer
}

const vector_secret = 'a-secret-that-everybody-knows-01'

export const testVector: Parts = {
  signer: { user: '13000', secret: vector_secret },
  timestamp: '1370442000',
  body: Buffer.from(
    '{"ops":[{"type":"create","obj":"task","conv_id":1234,"ref":"№7","data":{"city":"Київ"}}]}',
  ),
}

export interface Explained {
  readonly user: string
  readonly timestamp: string
  /** Only of the test vector. */
  readonly secret?: string
  readonly secret_bytes: number
  readonly body: string
  readonly body_bytes: number
  /** What is easily overlooked in the body. */
  readonly notes: readonly string[]
  readonly ways: readonly {
    readonly sign: 'path' | 'hmac'
    readonly signed_text: string
    readonly signed_bytes: number
    readonly signature: string
    readonly path: string
    readonly headers: Signed['headers']
    readonly curl: string
  }[]
}

export interface ExplainInput extends Parts {
  /** The address of the server. */
  readonly base: string
  /** The file of the body; undefined to put the body itself into the curl line. */
  readonly file: string | undefined
}

export function explained({ signer, timestamp, body, base, file }: ExplainInput): Explained {
  const { user, secret } = signer
  const is_vector = file === undefined && secret === vector_secret
  const shown_secret = is_vector ? secret : '***'
  const shown_body = shown(body)
  const secret_bytes = Buffer.byteLength(secret)
  const signatureOf = (sign: 'path' | 'hmac'): Explained['ways'][number] => {
    const { path, headers } = signed(1, { user, secret, sign }, timestamp, body)
    const given = file === undefined ? body.toString('utf8') : `@${file}`
    const in_path = sign === 'path'
    return {
      sign,
      signed_text: in_path
        ? `${timestamp}${shown_secret}${shown_body}${shown_secret}`
        : `${timestamp}${shown_body}`,
      signed_bytes: timestamp.length + body.length + (in_path ? 2 * secret_bytes : 0),
      signature: headers['X-API-Signature'] ?? path.slice(path.lastIndexOf('/') + 1),
      ...{ path, headers },
      curl: curlLine({ url: base + path, headers, body: given }),
    }
  }
  return {
    ...{ user, timestamp, secret_bytes },
    ...(is_vector ? { secret } : {}),
    body: shown_body,
    body_bytes: body.length,
    notes: notesOf(body),
    ways: [signatureOf('path'), signatureOf('hmac')],
  }
}

export function explainText(made: Explained): string {
  const { user, timestamp, secret = '***', secret_bytes, body, body_bytes, notes, ways } = made
  const given = columns([
    ['user', user],
    ['timestamp', `${timestamp} (Unix seconds, ${timestamp.length} bytes)`],
    ['secret', `${secret} (${secret_bytes} bytes)`],
    ['body', `${body} (${body_bytes} bytes, signed as they are sent)`],
    ...notes.map((note) => ['', note]),
  ])
  const steps = ways.map(({ sign, signed_text, signed_bytes, signature, path, headers, curl }) => {
    const in_path = sign === 'path'
    const sum = in_path
      ? `${timestamp.length} + ${secret_bytes} + ${body_bytes} + ${secret_bytes}`
      : `${timestamp.length} + ${body_bytes}`
    const rows = columns([
      ['signed', in_path ? 'timestamp, secret, body, secret' : 'timestamp, body'],
      ['', signed_text],
      ['bytes', `${sum} = ${signed_bytes}`],
      [in_path ? 'SHA-1' : 'HMAC-SHA-256', signature],
      ['path', path],
      ...Object.entries(headers).map(([name, value]) => ['header', `${name}: ${value}`]),
    ])
    const title = in_path
      ? 'In the path (--sign path)'
      : 'In headers (--sign hmac), keyed by the secret'
    return `\n${title}\n\n${rows}\n${clean(curl)}\n`
  })
  return given + steps.join('')
}

export function curlLine(request: {
  readonly url: string
  readonly headers: Signed['headers']
  readonly body: string
}): string {
  const lines_of_head = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`)
  const options = lines_of_head.map((line) => ` -H ${shellWord(line)}`).join('')
  return `curl -sS${options} --data-binary ${shellWord(request.body)} ${shellWord(request.url)}`
}

const shown_chars_max = 400

function shown(body: Buffer): string {
  const text = body.toString('utf8')
  if (text.length <= shown_chars_max) return text
  const part = shown_chars_max / 2
  return `${text.slice(0, part)} … ${text.slice(-part)}`
}

function notesOf(body: Buffer): string[] {
  const text = body.toString('utf8')
  const notes: string[] = []
  if (/\n$/.test(text))
    notes.push('ends with a line feed, which is signed: curl needs --data-binary')
  if (text.includes('\r\n')) notes.push('has line ends \\r\\n, which are signed as they are')
  if (text.startsWith('\ufeff')) notes.push('begins with a byte order mark, which is signed too')
  if (!Buffer.from(text).equals(body)) notes.push('is not UTF-8: signed as bytes, and refused')
  return notes
}
