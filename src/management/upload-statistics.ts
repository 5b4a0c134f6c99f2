/**
 * What uploads have made, by the hash in their answers, for tools that ask again and again until an
 * upload is done: here it is done before it is answered. It is kept in memory alone, for ten
 * minutes and of the last uploads, for the user who has made it.
 */
import { hash } from 'node:crypto'
import type { JsonObject, JsonValue } from '../core/model.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import { type Act, noObject, requireAdministrator, required } from './act.ts'
import type { Answer } from './answers.ts'

interface Done {
  readonly user: string | undefined
  readonly at_ms: number
  readonly scheme: JsonValue
}

const kept_ms = 10 * 60_000
const kept_max = 100

/** The oldest first. */
const done = new WeakMap<ServedEngine['process_parts'], Map<string, Done>>()

/** Its hash: 40 hex digits that nobody guesses. `nonce`: 32 random ones. */
export function noteUpload(act: Act, nonce: string, scheme: readonly JsonObject[]): string {
  const { engine, caller, tx } = act
  const name = hash('sha1', `upload ${nonce}`)
  const { now_ms: at_ms } = tx
  act.afterwards(() => {
    const all = done.get(engine.process_parts) ?? new Map<string, Done>()
    done.set(engine.process_parts, all)
    all.set(name, { user: caller.user, at_ms, scheme: [...scheme] })
    const [oldest] = all.keys()
    if (all.size > kept_max && oldest !== undefined) all.delete(oldest)
  })
  return name
}

export function getStatistics(act: Act): Answer {
  requireAdministrator(act)
  const { op, tx, engine, caller } = act
  const name = op.hash ?? op.obj_id ?? op.id
  if (name === undefined || name === null) throw required('id')
  const found = typeof name === 'string' ? done.get(engine.process_parts)?.get(name) : undefined
  const age_ms = found === undefined ? 0 : tx.now_ms - found.at_ms
  if (found === undefined || found.user !== caller.user || age_ms > kept_ms) {
    throw noObject('statistics', typeof name === 'string' ? name.slice(0, 64) : '-')
  }
  return { status: 'success', scheme: found.scheme }
}
