/**
 * Hostile gRPC: messages with bytes changed, read directly; and calls whose messages, or whose very
 * frames of HTTP/2, were changed, over a connection of their own. A message is read or refused; a
 * connection is answered or closed.
 */
import { connect } from 'node:net'
import {
  readApplyOps,
  readCreate,
  readModify,
  readShow,
  readStreamOps,
} from '../../src/server/grpc/request-messages.ts'
import { loadSchema } from '../../src/server/grpc/schema.ts'
import { readListTasks, readWatchTasks } from '../../src/server/grpc/task-messages.ts'
import type { FuzzHarness } from './fuzz-harness.ts'
import type { Dice } from './fuzz-ops.ts'
import { mutated } from './fuzz-requests.ts'
import { framed } from './grpc-raw.ts'
import { frame, headersBlock, preface, frame_types as types } from './hostile/http2-frames.ts'

const { service } = loadSchema()
/** What is answered later is answered for other tests; what counts here is that nothing breaks. */
const quiet_ms = 5

/** [the rpc, a message, what reads it]; each goes to a process of its own, which nobody else uses. */
const rpcs = [
  ['CreateTask', { conv_id: '1236', ref: 'g', data_json: Buffer.from('{"a":1.10}') }, readCreate],
  [
    'ModifyTask',
    { conv_id: '1236', ref: 'g', data_json: Buffer.from('{}'), is_sync: true, node_id: 'wait' },
    readModify,
  ],
  ['GetTask', { conv_id: '1236', obj_id: '0123456789abcdef01234567' }, readShow],
  [
    'ApplyOps',
    {
      ops: [
        { id: 'é', create: { conv_id: '1236', data_json: Buffer.from('[]') } },
        { show: { conv_id: 'x', ref: '' } },
      ],
    },
    (bytes: Buffer) => readApplyOps(bytes, 8),
  ],
  [
    'StreamOps',
    { seq: '18446744073709551615', ops: [{ modify: { conv_id: '1236', ref: 'x' } }] },
    (bytes: Buffer) => readStreamOps(bytes, 8),
  ],
  ['ListTasks', { conv_id: '1236', page_size: 3 }, readListTasks],
  ['WatchTasks', { conv_id: '1236' }, readWatchTasks],
] as const

function messageOf([name, message]: (typeof rpcs)[number]): Buffer {
  return (service[name] as { requestSerialize(message: object): Buffer }).requestSerialize(message)
}

/** A message is read, or refused with a RangeError. */
export function grpcMessages(dice: Dice): string | undefined {
  const rpc = dice.pick(rpcs)
  const bytes = mutated(dice, messageOf(rpc))
  try {
    rpc[2](bytes)
  } catch (error) {
    if (!(error instanceof RangeError) && (error as { code?: unknown }).code === undefined) {
      return `${rpc[0]} ${bytes.toString('hex')}: ${(error as Error).stack}`
    }
  }
  return undefined
}

const pairsOf = (path: string): readonly (readonly [string, string])[] => [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', path],
  [':authority', 'x'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
]

/** Frames of a connection: calls, and others between them; then the connection is ended. */
export async function grpcFrames(harness: FuzzHarness, dice: Dice): Promise<string | undefined> {
  const frames: Buffer[] = []
  for (let call = 0; call <= dice.below(3); call++) {
    const stream = 2 * call + 1
    const rpc = dice.pick(rpcs)
    const message = dice.chance(0.5) ? messageOf(rpc) : mutated(dice, messageOf(rpc))
    const block = headersBlock(
      pairsOf(dice.chance(0.9) ? `/conveyor.v1.TaskService/${rpc[0]}` : '/x'),
    )
    const cut = dice.chance(0.2) ? dice.below(block.length) : block.length
    frames.push(frame(types.headers, cut === block.length ? 4 : 0, stream, block.subarray(0, cut)))
    if (cut < block.length) frames.push(frame(types.continuation, 4, stream, block.subarray(cut)))
    const body = framed(message)
    if (dice.chance(0.1)) body[0] = dice.below(256)
    if (dice.chance(0.1)) body.writeUInt32BE(dice.pick([0, 1, 0xffffffff, 20_001]), 1)
    frames.push(frame(types.data, dice.chance(0.9) ? 1 : 0, stream, body))
    if (dice.chance(0.3)) frames.push(oddFrame(dice, stream))
  }
  const whole = Buffer.concat(frames)
  const bytes = Buffer.concat([preface, dice.chance(0.4) ? mutated(dice, whole) : whole])
  await sent(harness.ports.grpc, bytes)
  return undefined
}

function oddFrame(dice: Dice, stream: number): Buffer {
  const payload = Buffer.from(
    Array.from({ length: dice.pick([0, 4, 5, 6, 8, 9]) }, () => dice.below(256)),
  )
  return frame(
    dice.pick([...Object.values(types), 10, 255]),
    dice.below(256),
    dice.pick([0, stream, stream + 2, 0x7fffffff]),
    payload,
  )
}

/** Resolves once nothing more is answered for a while, or the server has ended the connection. */
function sent(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let quiet: NodeJS.Timeout | undefined
    socket.on('data', () => {
      clearTimeout(quiet)
      quiet = setTimeout(() => socket.destroy(), quiet_ms)
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(quiet)
      resolve()
    })
    socket.write(bytes)
  })
}
