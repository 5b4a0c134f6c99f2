/**
 * Hostile calls of the operator's page and its paths, with a session that may do everything: each is
 * answered with a stated status, and none with a bug. They name a process that does not exist.
 */
import type { FuzzHarness } from './fuzz-harness.ts'
import type { Dice } from './fuzz-ops.ts'
import { mutated } from './fuzz-requests.ts'

const names = [
  'frame',
  'process',
  'versions',
  'find',
  'tasks',
  'task',
  'bulk_jobs',
  'modify',
  'retry',
  'move',
  'cancel',
  'pause',
  'resume',
  'import',
  'sign_in',
  'nothing',
  '__proto__',
]
const paths = [
  '/',
  '/healthz',
  '/readyz',
  '/metrics',
  '/changes?after=x',
  '/console/',
  '/console/session',
  '/console/export?conv_id=77',
  '/console/../x',
  '/console/%00',
  '/console/page.js',
  '/x',
]

export async function operatorRequest(
  { ports, session }: FuzzHarness,
  dice: Dice,
  send: (port: number, bytes: Buffer) => Promise<Buffer>,
): Promise<string | undefined> {
  const is_call = dice.chance(0.7)
  const name = dice.pick(names)
  const body = is_call
    ? dice.chance(0.7)
      ? inputOf(dice)
      : mutated(dice, Buffer.from(inputOf(dice))).toString('latin1')
    : ''
  const head = [
    is_call
      ? `POST /console/api/${name} HTTP/1.1`
      : `${dice.pick(['GET', 'GET', 'HEAD', 'POST', 'BREW'])} ${dice.pick(paths)} HTTP/1.1`,
    ...[
      'Host: x',
      `Cookie: ${dice.chance(0.9) ? session.cookie : 'conveyor=x'}`,
      'Content-Type: application/json',
    ],
    ...[
      `X-Conveyor-Token: ${session.token}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ],
  ]
  const whole = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
  const is_changed = dice.chance(0.2)
  const received = await send(ports.operator, is_changed ? mutated(dice, whole) : whole)
  const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(received.toString('latin1'))?.[1])
  // Bytes that are no request may end a connection without an answer.
  if (Number.isNaN(status) ? is_changed : status < 500 || status === 503) return undefined
  return `${head[0]} ${body}: ${received.toString('latin1').slice(0, 400)}`
}

function inputOf(dice: Dice): string {
  const value = (): unknown =>
    dice.pick<unknown>([
      '77',
      '',
      'x'.repeat(300),
      0,
      -1,
      1.5,
      null,
      true,
      [],
      ['77'],
      {},
      { conv_id: '77' },
      '0123456789abcdef01234567',
      '{"a":1}',
      'e30=',
      'x.json',
      '__proto__',
    ])
  const members = [
    'conv_id',
    'obj_id',
    'ref',
    'text',
    'filter',
    'cursor',
    'limit',
    'order',
    'from',
    'to',
    'version',
    'data_text',
    'node_id',
    'name',
    'content_base64',
    'store',
    'link',
    'user',
    'secret',
    'places',
    'rows',
  ]
  const input = Object.fromEntries(
    Array.from({ length: dice.below(5) }, () => [dice.pick(members), value()]),
  )
  return JSON.stringify({ conv_id: '77', ...input })
}
