/**
 * Ops on variables, for administrators. A change counts at once. The value of a secret is encrypted
 * before the transaction, stored beside the variable, and never shown again.
 */
import { hash } from 'node:crypto'
import { parseJson, stringifyJson } from '../codec/json.ts'
import { variableKey } from '../codec/keys.ts'
import type { VariableAbout } from '../codec/records.ts'
import { inStage } from '../core/alias.ts'
import { defined } from '../core/defined.ts'
import { isFault } from '../core/faults.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { storedValue, variableOwner } from '../engine/transactions/variables.ts'
import { variableRef } from '../process/values.ts'
import {
  type Act,
  invalid,
  refusal,
  requireAdministrator,
  required,
  secondsOf,
  textIn,
} from './act.ts'
import type { Answer } from './answers.ts'
import {
  freeNumber,
  hasPattern,
  isAskedFor,
  type Named,
  namedAt,
  namedBy,
  namedIn,
  placeOf,
  putNamed,
  removeNamed,
  saidIn,
  shortNameIn,
  stageIn,
} from './named.ts'

type Variable = Named<VariableAbout>

export function listVariables(act: Act): Answer {
  requireAdministrator(act)
  const list = namedIn<VariableAbout>(act.tx.store, 'env_var').filter(
    (one) => isAskedFor(act, one.stage_id) && hasPattern(act, one),
  )
  return { list: list.map((one) => rowOf(act, one)) }
}

function rowOf(act: Act, variable: Variable): JsonObject {
  const { name, obj_id, about, stage_id } = variable
  const text = textOf(act, variable)
  const is_secret = about.secret !== undefined
  return {
    ...{ obj: 'env_var', obj_type: 'env_var', obj_id, short_name: name },
    ...{ title: about.title ?? name, description: about.description ?? '' },
    data_type: typeOf(variable),
    env_var_type: is_secret ? 'secret' : 'visible',
    value: is_secret ? null : text,
    ...{ scopes: [{ type: '*', fields: '*' }], fingerprints: fingerprints(text) },
    ...{ create_time: secondsOf(about.create_ms), change_time: secondsOf(about.change_ms) },
    uuid: uuidOf(obj_id),
    ...placeOf(act, stage_id),
  }
}

/** As a tool sends it; empty where a secret cannot be read. */
function textOf(act: Act, variable: Variable): string {
  const value = storedIn(act, variable)
  if (value === undefined) return ''
  return typeof value === 'string' && typeOf(variable) === 'raw' ? value : stringifyJson(value)
}

function storedIn({ tx }: Act, { name, stage_id }: Variable): JsonValue | undefined {
  const stored = tx.store.get(variableKey(inStage(name, stage_id)))
  return stored && storedValue(stored, tx.engine.variables.secretOf)
}

function typeOf({ about, text }: Variable): 'raw' | 'json' {
  return about.data_type ?? (text === '' || text.startsWith('"') ? 'raw' : 'json')
}

/** Upper-case hex with colons. */
function fingerprints(text: string): JsonObject[] {
  return ['md5', 'sha256'].map((algo) => {
    const digits = hash(algo, text).toUpperCase().match(/../g) ?? []
    return { algo, value: digits.join(':') }
  })
}

function uuidOf(obj_id: number): string {
  const digits = hash('sha256', `variable ${obj_id}`)
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
}

export function createVariable(act: Act): Answer {
  requireAdministrator(act)
  const at = { name: shortNameIn(act), stage_id: stageIn(act)?.id }
  requireNotGiven(act, at.name)
  if (namedAt(act, 'env_var', at) !== undefined) throw taken
  const { env_var_type = 'visible' } = act.op
  if (env_var_type !== 'visible' && env_var_type !== 'secret') {
    throw invalid('env_var_type', 'visible or secret')
  }
  if (act.op.value === undefined) throw required('value')
  const about = { ...saidIn(act), data_type: dataTypeIn(act) ?? 'raw' }
  const made: Variable = {
    ...{ kind: 'env_var', ...at, about, text: '' },
    obj_id: freeNumber(act, 'env_var', at),
  }
  const variable = withValue(act, made, env_var_type === 'secret')
  put(act, variable)
  const sent = fingerprints(textIn(act, 'value', value_chars_max(act)) as string)
  return { obj_id: variable.obj_id, fingerprints: sent }
}

const taken = refusal('env_var name already exists')

export function modifyVariable(act: Act): Answer {
  requireAdministrator(act)
  const before = namedBy<VariableAbout>(act, 'env_var')
  const name = shortNameIn(act)
  requireNotGiven(act, before.name)
  requireNotGiven(act, name)
  const other = namedAt(act, 'env_var', { ...before, name })
  if (other !== undefined && other.obj_id !== before.obj_id) throw taken
  const data_type = dataTypeIn(act)
  const about = { ...before.about, ...saidIn(act), ...defined({ data_type }) }
  const named = { ...before, name, about }
  const is_secret = about.secret !== undefined
  const is_sent = act.op.value !== undefined && act.op.value !== null
  const is_retyped = data_type !== undefined && data_type !== typeOf(before)
  if (is_retyped && !is_sent && is_secret) throw required('value')
  const text = is_sent ? textIn(act, 'value', value_chars_max(act)) : textOf(act, before)
  const next = is_sent || is_retyped ? withValue(act, named, is_secret, text) : named
  if (next.about.secret !== before.about.secret) forgetSecret(act, before)
  put(act, next, before)
  return { obj_id: before.obj_id }
}

export function deleteVariable(act: Act): Answer {
  requireAdministrator(act)
  const variable = namedBy<VariableAbout>(act, 'env_var')
  requireNotGiven(act, variable.name)
  removeNamed(act, variable)
  act.tx.store.del(variableKey(variableRef(String(variable.obj_id))))
  forgetSecret(act, variable)
  changed(act, variable)
  return { obj_id: variable.obj_id }
}

function put(act: Act, next: Variable, before?: Variable): void {
  putNamed(act, next, before)
  const staged = inStage(next.name, next.stage_id)
  act.tx.store.put(variableKey(variableRef(String(next.obj_id))), Buffer.from(staged))
  changed(act, next)
}

function changed(act: Act, { name }: Variable): void {
  const { engine, op, caller } = act
  const fields = { act: `${op.type} ${op.obj}`, user: caller.user, name }
  act.afterwards(() => engine.emit('process_managed', fields))
}

/** The variable with the value that the op sends, as its type reads it. */
function withValue(
  act: Act,
  variable: Variable,
  is_secret: boolean,
  text = textIn(act, 'value', value_chars_max(act)) ?? '',
): Variable {
  const is_json = variable.about.data_type === 'json'
  const value = is_json ? parsedText(text) : text
  if (value === undefined) throw invalid('value', 'JSON, as its data_type is')
  if (!is_secret) return { ...variable, text: stringifyJson(value) }
  const { sealed } = act
  if (sealed === undefined) throw required('value')
  sealed.put(act.tx.store)
  return { ...variable, text: '', about: { ...variable.about, secret: sealed.name } }
}

function parsedText(text: string): JsonValue | undefined {
  try {
    return parseJson(text)
  } catch (error) {
    if (isFault(error)) return undefined
    throw error
  }
}

const value_chars_max = ({ engine }: Act): number => engine.limits.task_bytes_max

/** What a change may have to store: whether the variable is a secret, its record says. */
export function secretIn({ value }: JsonObject): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function secretOfNew(op: JsonObject): string | undefined {
  return op.env_var_type === 'secret' ? secretIn(op) : undefined
}

function forgetSecret({ tx, engine, afterwards }: Act, { about: { secret } }: Variable): void {
  if (secret === undefined) return
  engine.addresses.locks.removeOf(tx.store, variableOwner(secret))
  afterwards(() => engine.addresses.locks.onRemovedOf(variableOwner(secret)))
}

/** Values given to the server come first, so that a change here would not count. */
function requireNotGiven({ tx }: Act, name: string): void {
  if (tx.engine.variables.isGiven(name)) {
    throw refusal(`env_var @${name} is given to the server`)
  }
}

function dataTypeIn({ op: { data_type } }: Act): 'raw' | 'json' | undefined {
  if (data_type === undefined || data_type === null) return undefined
  if (data_type === 'raw' || data_type === 'json') return data_type
  throw invalid('data_type', 'raw or json')
}
