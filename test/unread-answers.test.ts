/** Unread answers: how accounts bound them, and that each server keeps the bound. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isFault } from '../src/core/faults.ts'
import { limitsWith } from '../src/core/limits.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import {
  type AnswerAccount,
  type AnswerReservation,
  newAnswerAccounts,
} from '../src/engine/requests/unread-answers.ts'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { createOp } from './support/grpc-client.ts'
import { framed, rawHead, rawSession } from './support/grpc-raw.ts'
import { openGrpc } from './support/grpc-server.ts'
import { connectRaw } from './support/http-raw.ts'
import { codeOf, createBody, openHttp } from './support/http-server.ts'

/**
 * `set`, `add` (of 5,000 bytes) and `read` are of the account's last answer that was let in. The
 * accounts a and a2 are of one caller.
 */
type Step = [
  account: string,
  shows: number | 'set' | 'read' | 'add',
  expected?: 'in' | 'overloaded',
]

/** A reservation for so many shows takes four thousand bytes a show, and twenty thousand more. */
const bounds = limitsWith({
  answer_bytes_max: 10_000,
  task_bytes_max: 10_000,
  connection_answer_bytes_max: 60_000,
  answers_bytes_max: 100_000,
})
const of_callers = { ...bounds, caller_answer_bytes_max: 40_000 }

// biome-ignore format: one row a case
const rows: [string, Step[], typeof bounds?][] = [
  ['a connection has its share', [['a', 1, 'in'], ['a', 1, 'in'], ['a', 1, 'overloaded'], ['b', 1, 'in']]],
  ['one answer may be more than the share', [['a', 15, 'in'], ['a', 1, 'overloaded']]],
  ['all have theirs', [['a', 10, 'in'], ['b', 1, 'in'], ['c', 5, 'overloaded'], ['a', 'read'], ['c', 5, 'in']]],
  ['a made answer counts as what it is', [['a', 10, 'in'], ['a', 'set'], ['b', 10, 'in']]],
  ['it counts until it is read, and is given back once', [
    ['a', 15, 'in'], ['a', 'set'], ['a', 'read'], ['a', 'read'], ['b', 19, 'in'], ['c', 1, 'overloaded'],
  ]],
  ['one that is made after its caller has left takes nothing', [
    ['a', 15, 'in'], ['a', 'read'], ['a', 'set'], ['a', 'add', 'in'], ['b', 19, 'in'], ['c', 1, 'overloaded'],
  ]],
  ['an answer may grow as long as there is room', [
    ['a', 0, 'in'], ['a', 'add', 'in'], ['b', 10, 'in'], ['a', 'add', 'in'], ['b', 'add', 'overloaded'],
    ['c', 0, 'in'], ['c', 'add', 'in'], ['c', 'add', 'overloaded'], ['b', 'read'], ['c', 'add', 'in'],
  ]],
  ['a caller has his share, on all connections', [
    ['a', 1, 'in'], ['a2', 1, 'overloaded'], ['b', 1, 'in'], ['a2', 0, 'in'], ['a2', 'add', 'in'],
    ['a2', 'add', 'overloaded'], ['a', 'read'], ['a2', 'add', 'in'],
  ], of_callers],
  ['a short one is let in while others hold all there is', [['a', 19, 'in'], ['b', 1, 'overloaded'], ['b', 0, 'in']]],
]

describe('the answers of a connection, and of all', () => {
  for (const [what, steps, given = bounds] of rows) {
    test(what, () => {
      const newAccount = newAnswerAccounts(given)
      const accounts = new Map<string, AnswerAccount>()
      const rooms = new Map<string, AnswerReservation>()
      for (const [name, step, expected] of steps) {
        const account = accounts.get(name) ?? newAccount()
        accounts.set(name, account)
        if (step === 'set') rooms.get(name)?.set(5_000)
        else if (step === 'read') rooms.get(name)?.release()
        else if (step === 'add') {
          assert.equal(rooms.get(name)?.add(5_000) ? 'in' : 'overloaded', expected, name)
        } else assert.equal(enter(name, account, step), expected, `${name} ${step}`)
      }
      function enter(name: string, account: AnswerAccount, shows: number): 'in' | string {
        try {
          const ops = shows === 0 ? [{ type: 'create' }] : Array(shows).fill({ type: 'show' })
          rooms.set(name, account.reserve(ops, name.slice(0, 1)))
          return 'in'
        } catch (thrown) {
          return isFault(thrown) ? thrown.code : String(thrown)
        }
      }
    })
  }
})

/** Room for one answer of 16 MiB in the making, and not for another beside it. */
const limits = { answers_bytes_max: 64 * 1024 * 1024 }
const tasks = 140
const conv_id = '1234'

async function fill(engine: Engine): Promise<void> {
  const data = { s: 'x'.repeat(120_000) }
  for (let n = 0; n < tasks; n++) await engine.create({ conv_id, ref: `${n}`, data })
}

/** A server, and how it is used: each peer asks for all tasks and reads nothing. */
interface Server {
  /** Resolves once it could have been answered; `leave` ends its connection. */
  ask(): Promise<{ leave(): void }>
  /** The code of a small create. */
  create(ref: string): Promise<string>
  /** The code that another who asks for all of it gets. */
  askAndRead(): Promise<string>
  close(): Promise<void>
}

async function httpServer(): Promise<Server> {
  const server = await openHttp({ limits })
  await fill(server.engine)
  const shows = Array.from({ length: tasks }, (_, n) => ({
    type: 'show',
    obj: 'task',
    conv_id,
    ref: `${n}`,
  }))
  const body = JSON.stringify({ ops: shows })
  return {
    async ask() {
      const { socket, send } = await connectRaw(server.port)
      socket.pause()
      send(server.post(body))
      return { leave: () => socket.destroy() }
    },
    create: async (ref) => codeOf(await server.send(createBody(ref))),
    askAndRead: async () => codeOf(await server.send(body)),
    close: server.close,
  }
}

async function grpcServer(is_stream: boolean): Promise<Server> {
  const server = await openGrpc({ limits })
  await fill(server.engine)
  const { service } = loadSchema()
  const ops = Array.from({ length: tasks }, (_, n) => ({
    id: `${n}`,
    show: { conv_id, ref: `${n}` },
  }))
  const { path, requestSerialize } = is_stream ? service.StreamOps : service.ApplyOps
  const client = server.connect()
  return {
    async ask() {
      const session = await rawSession(server)
      const call = session.request(rawHead(path))
      call.on('error', () => {})
      call.write(framed(requestSerialize({ ops })))
      if (!is_stream) call.end()
      return { leave: () => session.destroy() }
    },
    create: (ref) => client.statusOf('ApplyOps', { ops: [createOp(ref)] }),
    askAndRead: () => client.statusOf('ApplyOps', { ops }),
    close: server.close,
  }
}

const servers: [string, () => Promise<Server>, good: string, refused: string][] = [
  ['signed HTTP', httpServer, 'ok', 'overloaded'],
  ['gRPC', () => grpcServer(false), 'OK', 'UNAVAILABLE'],
  ['a gRPC stream', () => grpcServer(true), 'OK', 'UNAVAILABLE'],
]

describe('a peer that does not read', () => {
  for (const [name, open, good, refused] of servers) {
    test(`${name}: others are served, but nobody gets as much until it is gone`, async () => {
      const server = await open()
      const peer = await server.ask()
      const until = async (code: string): Promise<void> => {
        for (let turn = 0; (await server.askAndRead()) !== code; turn++) assert.ok(turn < 100)
      }
      await until(refused)
      assert.equal(await server.create('other'), good)
      assert.equal(await server.askAndRead(), refused)
      peer.leave()
      await until(good)
      await server.close()
    })
  }
})
