/**
 * A request with ops on other objects than tasks: all its ops, tasks' too, are applied in order in
 * one transaction, and its answer is kept for a repeat where it changes something. The kept answer
 * of such an op is its text, as the description of a result; one that only reads is read again.
 */
import { bytesOf, isObject, parseStored, stringifyJson } from '../codec/json.ts'
import { isOtherOp } from '../codec/op.ts'
import { renderEntries, renderResult } from '../codec/response-body.ts'
import type { ServerName } from '../core/counters.ts'
import { defined } from '../core/defined.ts'
import { fault, isFault, isWholeFaultCode } from '../core/faults.ts'
import type { Caller, JsonObject, JsonValue, Op, OpResult } from '../core/model.ts'
import { mayAdminister } from '../engine/access/users.ts'
import type { Ahead } from '../engine/drafts/draft-confirm.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import { applyOps } from '../engine/tasks/ops.ts'
import type { Transaction } from '../engine/transactions/transaction.ts'
import { type Act, idText, refusal, type Sealed } from './act.ts'
import { doneText, procOf, refusedText, unknownText } from './answers.ts'
import { withSealed } from './sealing.ts'
import { type Row, rowIn, rowsOf } from './table.ts'

type Service = NonNullable<OtherRequest['at']>

export interface OtherRequest {
  readonly server: ServerName
  readonly version: 1 | 2
  readonly caller: Caller
  /** Parsed as if all were on tasks. */
  readonly ops: readonly (Op | OpResult)[]
  /** The JSON text that the ops were parsed from. */
  readonly body: Buffer
  /** The service whose address the request was sent to; those but `json` have no ops on tasks. */
  readonly at?: 'json' | 'download' | 'upload' | 'merge' | 'compare' | 'copy'
}

interface Other {
  readonly op: JsonObject
  readonly row: Row | undefined
}

interface Applied {
  readonly text: string
  readonly proc: string
}

/** Resolves with the answer as JSON text. Rejects with a fault of the request. */
export async function answerOthers(engine: ServedEngine, request: OtherRequest): Promise<string> {
  return renderEntries(await answersOf(engine, request))
}

async function answersOf(
  engine: ServedEngine,
  { server, version, caller, ops, body, at: service = 'json' }: OtherRequest,
): Promise<string[]> {
  const others = new Map<Op | OpResult, Other>()
  const raw_ops = rawOpsOf(body)
  const placed = ops.map((parsed, at): Op | OpResult => {
    const op = raw_ops[at]
    const is_refused = service === 'merge' || service === 'compare' || service === 'copy'
    if (!isObject(op) || !(is_refused || namesOther(op))) return parsed
    checkEchoed(op)
    const place: OpResult = { ...place_of_other, description: stringifyJson(op) }
    others.set(place, { op, row: is_refused ? notOffered(service) : rowAt(service, op) })
    return place
  })
  const all = [...others.values()]
  const is_change = all.some(({ row }) => row !== undefined && !row.is_read)
  if (all.some(({ row }) => row?.needs_addresses)) await engine.addresses.prepare()
  const ahead = await compiledAhead(engine, all, caller)
  for (const { op, row } of all) await row?.prepare?.(engine, op, caller)
  let made = new Map<Op | OpResult, Applied>()
  let afterwards: (() => void)[] = []
  let spent = { compiles: 0 }
  let sealed: ReadonlyMap<JsonObject, Sealed> = new Map()
  const apply = (tx: Transaction, some: readonly (Op | OpResult)[], by: Caller): OpResult[] => {
    made = new Map()
    afterwards = []
    spent = { compiles: 0 }
    return some.map((op) => {
      const other = others.get(op)
      if (other === undefined) return applyOps(tx, [op], by)[0] as OpResult
      const applied = run(tx, other)
      made.set(op, applied)
      const is_mended = applied.proc !== 'ok' && other.row?.is_tried_again === true
      const kept = isReadAgain(other) || is_mended ? '' : applied.text
      return { ...place_of_other, description: kept }
    })
  }

  function run(tx: Transaction, { op, row }: Other): Applied {
    const act: Act = {
      ...{
        tx,
        op,
        caller,
        engine,
        ahead,
        spent,
        is_administrator: mayAdminister(tx.store, caller),
        sealed: sealed.get(op),
      },
      afterwards: (then) => void afterwards.push(then),
    }
    const before = afterwards.length
    try {
      if (row === undefined && rowsOf(op.obj as string) === undefined) {
        return { text: unknownText(version, op), proc: 'error' }
      }
      if (row === undefined) throw refusal('bad type', { key: 'type' })
      const { answer_bytes_max } = engine.limits
      const too_large = (): Error =>
        fault('answer_too_large', `Answer size is over ${answer_bytes_max} bytes`)
      if (row.is_read && tx.shown_bytes > answer_bytes_max) throw too_large()
      const text = doneText(version, op, row.run(act))
      tx.shown_bytes += bytesOf(text)
      if (row.is_read && tx.shown_bytes > answer_bytes_max) throw too_large()
      return { text, proc: 'ok' }
    } catch (thrown) {
      if (!isFault(thrown) || isWholeFaultCode(thrown.code)) throw thrown
      afterwards.length = before
      return { text: refusedText(version, op, thrown), proc: procOf(version, thrown) }
    }
  }

  const results = await withSealed(engine, all, (given) => {
    sealed = given
    return engine.submitOthers(placed, caller, { apply, is_change })
  })
  for (const then of afterwards) then()
  const unread = placed.filter((op, at) => others.has(op) && textAt(op, at) === '')
  if (unread.length > 0) {
    await engine.submitOthers(unread, caller, { apply, is_change: false })
    for (const then of afterwards) then()
  }
  return placed.map((op, at) => {
    const other = others.get(op)
    const { conv_id } = other === undefined ? (op as { conv_id?: string }) : idsOf(other.op)
    const proc = other === undefined ? results[at]?.proc : (made.get(op)?.proc ?? 'ok')
    if (other !== undefined) engine.counters.countOp('other', proc as string)
    if (proc !== 'ok') engine.emit('op_refused', { server, code: proc, conv_id, user: caller.user })
    return other === undefined ? renderResult(version, results[at] as OpResult) : textAt(op, at)
  })

  function textAt(op: Op | OpResult, at: number): string {
    return made.get(op)?.text ?? results[at]?.description ?? ''
  }
}

/** At the address for downloads an op needs no type. */
function rowAt(service: Service, { obj, type }: JsonObject): Row | undefined {
  const rows = rowsOf(obj as string)
  const is_download = service === 'download' && (type ?? 'create') === 'create'
  return rows && rowIn(rows, is_download ? 'download' : type)
}

const notOffered = (service: string): Row => ({
  is_read: true,
  run() {
    throw refusal(`${service} is not offered here`)
  },
})

/** Each process once. */
async function compiledAhead(
  engine: ServedEngine,
  all: readonly Other[],
  caller: Caller,
): Promise<ReadonlyMap<string, Ahead>> {
  const ahead = new Map<string, Ahead>()
  for (const { op, row } of all) {
    if (row?.compileAhead === undefined) continue
    const [conv_id, compiled] = (await row.compileAhead(engine, op, caller, ahead)) ?? []
    if (conv_id !== undefined && compiled !== undefined) ahead.set(conv_id, compiled)
  }
  return ahead
}

/** Reading, and a refusal that no state decides, need no kept answer. */
const isReadAgain = ({ row }: Other): boolean => row === undefined || row.is_read === true

/** A kept answer has 64 KiB, and repeats these members. */
const echoed_chars_max = 10_000

/** Throws `format_error`. */
function checkEchoed({ id, obj_id }: JsonObject): void {
  for (const echoed of [id, obj_id]) {
    if (typeof echoed === 'string' && echoed.length > echoed_chars_max) {
      throw fault('format_error', `an id of an op has more than ${echoed_chars_max} characters`)
    }
  }
}

/** Stands for an op on another object in the queue and in the records of repeats. */
const place_of_other = { ref: null, obj: 'task', proc: 'error', key: 'obj' } as const

const idsOf = ({ conv_id }: JsonObject): { conv_id?: string } =>
  defined({ conv_id: idText(conv_id) })

/** Whether an op has its row in the table, or none because the object is unknown. */
export const namesOther = (op: JsonValue | undefined): op is JsonObject =>
  isObject(op) && isOtherOp(op)

/** The ops of a body that has been checked, whole and exact. */
function rawOpsOf(body: Buffer): JsonValue[] {
  const { ops } = parseStored(body.toString('utf8')) as JsonObject
  return Array.isArray(ops) ? ops : [ops as JsonValue]
}
