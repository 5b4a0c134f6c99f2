/**
 * Serves webhooks and callback addresses, which need no signature (wire 1.11): a webhook creates a
 * task from the body, a callback merges the body into the task that it names. The hash of the path
 * is compared after the body is read, as a signature is. A wrong hash, a closed address and an
 * unknown process are all `not_found`, in the same time. The tasks have no user.
 */
import { hash as digest, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { docOfForm } from '../../codec/form-body.ts'
import { docOfBytes, type JsonBounds, objectOf } from '../../codec/json.ts'
import { isOp, type OpMembers, opWithData } from '../../codec/op.ts'
import { renderOneResult } from '../../codec/response-body.ts'
import type { Doc, JsonValue, Op, OpResult } from '../../core/model.ts'
import { emitRefusedOps } from '../../core/refusals.ts'
import type { CallbackRules } from '../../process/logic.ts'
import { member } from '../../process/templates/path.ts'
import type { Exchange, ServerContext } from './context.ts'
import { httpFault } from './fault-response.ts'
import type { CallbackTarget, WebhookTarget } from './path.ts'
import { reply } from './reply.ts'
import { tracedCaller, traceRequest } from './request-trace.ts'

const access_denied = { challenge: 'Basic', request_proc: 'access_denied' } as const

/** Rejects with the fault to answer. */
export async function serveWebhook(
  exchange: Exchange,
  target: WebhookTarget,
  body: Buffer,
): Promise<void> {
  const { hash, form } = target
  const { context, request } = exchange
  const { engine } = context
  const webhook = await engine.addresses.findWebhook(target.conv_id, hash)
  if (webhook === undefined) throw httpFault('not_found')
  const { user, lock, conv_id } = webhook
  const given = basicCredentials(request.headers.authorization)
  if (lock !== undefined) {
    const is_open = isOneOf(given, [lock.credentials ?? '']) && lock.credentials !== undefined
    if (!is_open) throw httpFault('bad_signature', 'Access denied', access_denied)
  } else if (user !== undefined) {
    const known = engine.users.secrets(user).map((secret) => `${user}:${secret}`)
    if (!isOneOf(given, known)) {
      throw httpFault('bad_signature', 'wrong or no basic credentials', { challenge: 'Basic' })
    }
  }
  traceRequest(exchange, target)
  await applyOne(exchange, user ?? addressOf(request), async () => {
    const data = await readers[form](context, body)
    return opWithData('create', { conv_id }, data, engine.limits)
  })
}

/** Rejects with the fault to answer. */
export async function serveCallback(
  exchange: Exchange,
  target: CallbackTarget,
  body: Buffer,
): Promise<void> {
  const { conv_id, node_id, hash } = target
  const { context, request } = exchange
  const rules = await context.engine.addresses.findCallback(conv_id, node_id, hash)
  if (rules === undefined) throw httpFault('not_found')
  traceRequest(exchange, target)
  const readOp = (): Op | OpResult => {
    const data = readJson(context, body)
    const demands = rules.is_sync ? { is_sync: true, node_id } : {}
    const members = { conv_id, ...taskNamed(data, rules), ...demands }
    const op = opWithData('modify', members, data, context.engine.limits)
    return isOp(op) ? op : namedByPath(op, rules)
  }
  await applyOne(exchange, addressOf(request), readOp, ofSyncCallback)
}

/** A callback address has a word of its own for a task that is not, or no longer, in its node. */
function ofSyncCallback(result: OpResult): OpResult {
  if (result.proc !== 'no_api_callback_in_node_with_task') return result
  return { ...result, proc: not_there, description: not_there }
}

const not_there = 'task_not_in_current_sync_callback_node'

/** Applies the op of `readOp` within the rate of `payer`, and answers its result. */
async function applyOne(
  exchange: Exchange,
  payer: string,
  readOp: () => Op | OpResult | Promise<Op | OpResult>,
  answered = (result: OpResult) => result,
): Promise<void> {
  const { engine, name } = exchange.context
  engine.checkRate(payer)
  const op = await readOp()
  const results = await engine.submit([op], tracedCaller(exchange, { payer }))
  emitRefusedOps(engine.emit, name, undefined, [op], results)
  reply(exchange, 200, renderOneResult(answered(results[0] as OpResult)))
}

function readJson(context: ServerContext, body: Buffer): Doc {
  return docOfBytes(body, boundsOf(context))
}

/** Its parser takes several MB and is loaded at first use. */
async function readXml(context: ServerContext, body: Buffer): Promise<Doc> {
  const { docOfXml } = await import('../../codec/xml-read.ts')
  return docOfXml(body, boundsOf(context))
}

function readForm({ limits }: ServerContext, body: Buffer): Doc {
  return docOfForm(body, limits.body_values_max)
}

const readers = { json: readJson, xml: readXml, nvp: readForm } as const

function boundsOf({ limits }: ServerContext): JsonBounds {
  return { nesting_max: limits.nesting_max, values_max: limits.body_values_max }
}

/** The task's id is at the path of the rules: an obj_id if it has that form, else a ref. */
function taskNamed(data: Doc, { id_path }: CallbackRules): OpMembers {
  const object = objectOf(data)
  if (id_path.length === 0) return { obj_id: member(object, 'obj_id'), ref: member(object, 'ref') }
  let id: JsonValue | undefined = object
  for (const name of id_path) id = member(id, name)
  return typeof id === 'string' && /^[0-9a-fA-F]{24}$/.test(id) ? { obj_id: id } : { ref: id }
}

/** The refusal of a malformed id, with its path in the body. */
function namedByPath(refusal: OpResult, { id_path }: CallbackRules): OpResult {
  const { key, description = '' } = refusal
  if (key !== 'ref' || id_path.length === 0) return refusal
  const path = id_path.join('.')
  return { ...refusal, key: path, description: description.replace('ref', () => path) }
}

/** `name:secret` of HTTP basic authentication; empty without. */
function basicCredentials(header: string | undefined): string {
  const [, given = ''] = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header ?? '') ?? []
  return Buffer.from(given, 'base64').toString('utf8')
}

/** Compares all of them, in constant time. */
function isOneOf(given: string, known: readonly string[]): boolean {
  const hash = digest('sha256', given)
  const same = known.filter((one) =>
    timingSafeEqual(Buffer.from(digest('sha256', one)), Buffer.from(hash)),
  )
  return same.length > 0
}

/** The payer of the rate without a user. No user has such an id. */
function addressOf({ socket }: IncomingMessage): string {
  return `address ${socket.remoteAddress ?? ''}`
}
