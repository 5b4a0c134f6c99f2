/**
 * The vectors on the gRPC server, over mutual TLS: a list of ops as messages, and their results as
 * the text that the JSON endpoint would have answered, so that both can be compared.
 *
 * What proto3 has no form for (a member of another type, a ref that is a number, a raw body) is no
 * request of this server: `opMessages` says so, and the transport makes it in the process.
 */
import type { ServiceError } from '@grpc/grpc-js'
import {
  isNumberToken,
  isObject,
  numberText,
  parseJson,
  stringifyJson,
} from '../../src/codec/json.ts'
import { renderFault, renderResults } from '../../src/codec/response-body.ts'
import type { WholeFaultCode } from '../../src/core/faults.ts'
import type { JsonObject, JsonValue, OpResult, OpType, Status, Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { type GrpcServer, serveGrpc } from '../../src/grpc.ts'
import type { Op, OpResult as OpResultMessage } from '../../src/server/grpc/generated/messages.ts'
import type { Sent } from '../../src/server/grpc/schema.ts'
import { makeClient, sharedAuthority } from './grpc-certs.ts'
import { openClient, type TestClient } from './grpc-client.ts'
import type { World } from './vector-state.ts'

export interface GrpcVectors {
  /** Whether the ops can be said in messages. */
  canSend(ops: string): boolean
  /** The whole answer. */
  send(user: string | null, version: 1 | 2, ops: string): Promise<string>
}

interface SharedServer {
  readonly server: GrpcServer
  /** By the user they call as. */
  readonly clients: Map<string | null, TestClient>
}

/** The engine that the servers serve, and where they tell of bugs. */
let current: { readonly engine: Engine; readonly bugs: unknown[] } | undefined
/** By the limits of the engine: a server and its handshakes cost more than a vector. */
const servers = new Map<string, Promise<SharedServer>>()

const served = new Proxy({} as Engine, {
  get: (_, name) => Reflect.get(current?.engine ?? {}, name),
  has: (_, name) => name in (current?.engine ?? {}),
})

async function startServer(): Promise<SharedServer> {
  const { folder } = await sharedAuthority()
  const onBug = (bug: unknown): unknown => current?.bugs.push(bug)
  return {
    server: await serveGrpc(served, { port: 0, tls: { folder }, onBug }),
    clients: new Map(),
  }
}

export async function closeGrpcVectors(): Promise<void> {
  for (const { server, clients } of await Promise.all(servers.values())) {
    for (const client of clients.values()) client.close()
    await server.drain()
  }
}

async function openAs(user: string | null, { server, clients }: SharedServer): Promise<TestClient> {
  const known = clients.get(user)
  if (known !== undefined) return known
  const { ca } = await sharedAuthority()
  const named = await makeClient(ca, { san: [{ type: 'url', value: nameOf(user) }] })
  const client = openClient(server.address, { ca, client: named })
  clients.set(user, client)
  return client
}

const nameOf = (user: string | null): string => `vector:${user ?? 'all'}`

/** From now on the servers serve this world. One starts where messages can carry a request. */
export function openGrpcVectors(world: World, bugs: unknown[]): GrpcVectors {
  const engine = world.engine()
  current = { engine, bugs }
  const bound = new Set<string>()

  async function clientOf(user: string | null): Promise<TestClient> {
    if (user !== null && !bound.has(user)) {
      bound.add(user)
      await engine.users.bind(user, `uri:${nameOf(user)}`)
    }
    const key = JSON.stringify(engine.limits)
    const server = servers.get(key) ?? startServer()
    servers.set(key, server)
    return openAs(user, await server)
  }

  /** The message has no place for why a task failed: that comes out of the engine. */
  async function withDetails(result: OpResult): Promise<OpResult> {
    const { task } = result
    if (task?.status !== 'failed') return result
    const { status_details } = (await engine.task(task)) as Task
    return status_details ? { ...result, task: { ...task, status_details } } : result
  }

  return {
    canSend: (text) => !(parseJson(text) as JsonValue[]).map(opMessage).includes(undefined),
    async send(user, version, text) {
      const ops = parseJson(text) as JsonValue[]
      const messages = ops.map(opMessage)
      const client = await clientOf(user)
      try {
        const { results } = await client.apply(messages as Sent<Op>[])
        const read = results.map((result, at) => resultOf(result, ops[at] as JsonObject))
        return renderResults(version, await Promise.all(read.map(withDetails)))
      } catch (error) {
        const [, code, description] =
          /^([a-z_]+): (.*)$/s.exec((error as ServiceError).details) ?? []
        if (code === undefined) throw error
        return renderFault(code as WholeFaultCode, description as string)
      }
    },
  }
}

/** Undefined where the op has no such form. */
function opMessage(op: JsonValue): Sent<Op> | undefined {
  if (!isObject(op) || op.obj !== 'task') return undefined
  const conv_id = textOf(op.conv_id, /^[1-9][0-9]*$/)
  const { ref, obj_id, is_sync = false } = op
  const node_id = op.node_id === undefined ? '' : op.node_id
  if (conv_id === undefined || !isText(ref) || !isText(obj_id)) return undefined
  if (typeof is_sync !== 'boolean' || typeof node_id !== 'string') return undefined
  if ('node_id' in op && node_id === '') return undefined
  const named = ref === undefined || ref === null ? {} : { ref: ref as string }
  const numbered = obj_id === undefined || obj_id === null ? {} : { obj_id: obj_id as string }
  const id = op.id === undefined ? '' : stringifyJson(op.id)
  const target = { ...named, ...numbered }
  if (op.type === 'show') {
    return Object.keys(target).length === 2 ? undefined : { id, show: { conv_id, ...target } }
  }
  if (!isObject(op.data)) return undefined
  const data_json = Buffer.from(stringifyJson(op.data))
  if (op.type === 'create') return { id, create: { conv_id, ...named, data_json } }
  if (op.type !== 'modify' || Object.keys(target).length === 2) return undefined
  return { id, modify: { conv_id, ...target, data_json, is_sync, node_id } }
}

function isText(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return true
  return typeof value === 'string' && value.isWellFormed()
}

function textOf(value: JsonValue | undefined, digits: RegExp): string | undefined {
  if (typeof value === 'string') return value === '' || !value.isWellFormed() ? undefined : value
  if (typeof value !== 'number' && !isNumberToken(value)) return undefined
  const text = numberText(value)
  return digits.test(text) ? text : undefined
}

function resultOf(result: OpResultMessage, op: JsonObject): OpResult {
  const { ref, obj_id, proc, description, task } = result
  const key = /^(?:Key '|Value is not valid\. )([a-z_]+)/.exec(description)?.[1]
  return {
    type: op.type as OpType,
    ...(op.id === undefined ? {} : { id_text: result.id }),
    ref: ref ?? null,
    obj: 'task',
    ...(obj_id === '' ? {} : { obj_id }),
    proc: proc as OpResult['proc'],
    ...(proc === 'ok' ? {} : { description }),
    ...(proc === 'error' && key !== undefined ? { key } : {}),
    ...(task ? { task: taskOf(task) } : {}),
  }
}

function taskOf(task: NonNullable<OpResultMessage['task']>): Task {
  const data_text = task.data_json.toString()
  const { status_details, history: _none, ...rest } = task
  return {
    ...rest,
    ...(status_details === null ? {} : { status_details }),
    ref: task.ref ?? null,
    status: task.status as Status,
    user_id: task.user_id === '' ? null : task.user_id,
    create_time_ms: Number(task.create_time_ms),
    change_time_ms: Number(task.change_time_ms),
    data_text,
    data: undefined,
  }
}
