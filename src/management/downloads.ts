/**
 * Downloads of schemes. An address names the process, its version, the time and, by a proof of this
 * server, the user who asked; nothing is stored. It holds for ten minutes, any number of times,
 * while the user may edit the process.
 */
import { timingSafeEqual } from 'node:crypto'
import { stringifyJson } from '../codec/json.ts'
import { grant_bits } from '../codec/records.ts'
import type { Caller } from '../core/model.ts'
import { mayAdminister } from '../engine/access/users.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import type { Transaction } from '../engine/transactions/transaction.ts'
import { type Act, editable, idOf, noObject, refusal } from './act.ts'
import type { Answer } from './answers.ts'
import { definitionOf } from './definition.ts'

export interface File {
  readonly conv_id: string
  readonly made_ms: number
  /** The version in 8 hex digits, and 56 of the proof. */
  readonly token: string
}

const kept_ms = 10 * 60_000
const version_digits = 8
const token_digits = 64

export function downloadScheme(act: Act): Answer {
  const { op, tx, engine, caller } = act
  const { obj_type = 'conv', format = 'json' } = op
  if (obj_type !== 'conv') throw noObject(String(obj_type), idOf(act, 'obj_id'))
  const { conv_id, record } = editable(act, 'obj_id')
  if (format !== 'json') throw refusal('a download is json here')
  const token = tokenOf(engine, conv_id, record.version, tx.now_ms, caller)
  if (token === undefined) throw new Error('there is no secret for addresses')
  const name = `conv_${encodeURIComponent(conv_id)}_${tx.now_ms}_${token}.json`
  const download_url = engine.addresses.printed(`/user_downloads/${name}`)
  return { download_url, statistics_id: token.slice(version_digits) }
}

function tokenOf(
  engine: ServedEngine,
  conv_id: string,
  version: number,
  made_ms: number,
  { user = '' }: Caller,
): string | undefined {
  const parts = ['download', user, conv_id, version, made_ms]
  const proof = engine.addresses.proofOf(JSON.stringify(parts))
  const head = version.toString(16).padStart(version_digits, '0')
  return proof && (head + proof).slice(0, token_digits)
}

/** An array with the definition, as JSON text; undefined where this caller gets none. */
export async function fileText(
  engine: ServedEngine,
  { conv_id, made_ms, token }: File,
  { user }: Caller,
): Promise<string | undefined> {
  const caller: Caller = user === undefined ? {} : { user }
  const version = Number.parseInt(token.slice(0, version_digits), 16)
  const wanted = tokenOf(engine, conv_id, version, made_ms, caller)
  const is_ours = wanted !== undefined && timingSafeEqual(Buffer.from(wanted), Buffer.from(token))
  let text: string | undefined
  const apply = (tx: Transaction): [] => {
    const age_ms = tx.now_ms - made_ms
    const is_fresh = age_ms >= 0 && age_ms <= kept_ms
    const bits = user === undefined ? 0 : tx.grantBits(user, conv_id)
    const may = mayAdminister(tx.store, caller) || (bits & grant_bits.edit) !== 0
    const process = is_ours && is_fresh && may ? tx.process(conv_id) : undefined
    const found = process && definitionOf(tx.store, process, version)
    text = found && `[${stringifyJson(found.value)}]`
    return []
  }
  await engine.submitOthers([place], caller, { apply, is_change: false })
  return text
}

/** Counts as one op for the rate and the queue. */
const place = { type: 'show', ref: null, obj: 'task', proc: 'error', key: 'obj' } as const
