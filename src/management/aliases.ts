/** Ops on aliases. Administrators change them; editors see those of their processes. */
import { type AliasAbout, grant_bits } from '../codec/records.ts'
import { defined } from '../core/defined.ts'
import type { JsonObject } from '../core/model.ts'
import { newNonce } from '../engine/definitions/webhooks.ts'
import {
  type Act,
  idText,
  idValue,
  invalid,
  noObject,
  refusal,
  requireAdministrator,
  rightsIn,
  secondsOf,
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
import { privsOf } from './reading.ts'
import { ownerOf } from './users.ts'

type Alias = Named<AliasAbout>

export function listAliases(act: Act): Answer {
  const conv_id = idText(act.op.conv_id)
  const list = namedIn<AliasAbout>(act.tx.store, 'alias').filter((alias) => {
    const is_asked = conv_id === undefined || alias.text === conv_id
    const may = (rightsIn(act, alias.text) & grant_bits.edit) !== 0
    return is_asked && may && isAskedFor(act, alias.stage_id) && hasPattern(act, alias)
  })
  return { list: list.map((alias) => rowOf(act, alias)) }
}

export function showAlias(act: Act): Answer {
  requireAdministrator(act)
  const alias = namedBy<AliasAbout>(act, 'alias')
  return { ...rowOf(act, alias), obj_id: alias.obj_id }
}

function rowOf(act: Act, alias: Alias): JsonObject {
  const { name, text: conv_id, obj_id, about } = alias
  const target = conv_id === '' ? undefined : act.tx.process(conv_id)
  return {
    ...{ obj: 'alias', obj_type: 'alias', obj_id, title: about.title ?? name, short_name: name },
    description: about.description ?? '',
    ...placeOf(act, alias.stage_id),
    obj_to_id: conv_id === '' ? null : idValue(conv_id),
    ...{ obj_to_type: 'conv', obj_to_title: target?.record.title ?? '' },
    ...ownerOf(act, about.owner),
    ...{ create_time: secondsOf(about.create_ms), change_time: secondsOf(about.change_ms) },
    privs: privsOf(rightsIn(act, conv_id)),
  }
}

export function createAlias(act: Act): Answer {
  requireAdministrator(act)
  const at = { name: shortNameIn(act), stage_id: stageIn(act)?.id }
  if (namedAt(act, 'alias', at) !== undefined) throw taken
  return { obj_id: put(act, { ...newAlias(act, at), text: targetIn(act) ?? '' }) }
}

const taken = refusal('alias name already exists')

function newAlias(act: Act, at: Pick<Alias, 'name' | 'stage_id'>): Alias {
  const { user } = act.caller
  const about = { ...saidIn(act), ...defined({ owner: user }) }
  return { kind: 'alias', ...at, obj_id: freeNumber(act, 'alias', at), text: '', about }
}

export function modifyAlias(act: Act): Answer {
  requireAdministrator(act)
  const alias = namedBy<AliasAbout>(act, 'alias')
  const name = act.op.short_name === undefined ? alias.name : shortNameIn(act)
  const other = namedAt(act, 'alias', { ...alias, name })
  if (other !== undefined && other.obj_id !== alias.obj_id) throw taken
  const text = targetIn(act) ?? alias.text
  return {
    obj_id: put(act, { ...alias, name, text, about: { ...alias.about, ...saidIn(act) } }, alias),
  }
}

/** Makes it, or changes the one that has its name. */
export function upsertAlias(act: Act): Answer {
  requireAdministrator(act)
  const at = { name: shortNameIn(act), stage_id: stageIn(act)?.id }
  const old = namedAt<AliasAbout>(act, 'alias', at)
  const alias = old ?? newAlias(act, at)
  const text = targetIn(act) ?? alias.text
  return { obj_id: put(act, { ...alias, text, about: { ...alias.about, ...saidIn(act) } }, old) }
}

export function linkAlias(act: Act): Answer {
  requireAdministrator(act)
  const alias = namedBy<AliasAbout>(act, 'alias')
  const target = targetIn(act)
  if (act.op.link !== false && target === undefined) throw invalid('obj_to_id', 'a process')
  const text = act.op.link === false ? '' : (target as string)
  return { obj_id: put(act, { ...alias, text }, alias) }
}

export function deleteAlias(act: Act): Answer {
  requireAdministrator(act)
  const alias = namedBy<AliasAbout>(act, 'alias')
  removeNamed(act, alias)
  changed(act, alias)
  return { obj_id: alias.obj_id }
}

/** The webhook of an alias, which stands behind its number and opens whatever it names. */
export function aliasHash(act: Act, change: 'keep' | 'open' | 'new' | 'off'): Answer {
  requireAdministrator(act)
  const { engine } = act
  const { alias_id = null } = act.op
  const alias = namedBy<AliasAbout>({ ...act, op: { obj_id: alias_id } }, 'alias')
  const { nonce: before, ...closed } = alias.about
  const fresh = newNonce(engine.chance)
  const nonce = { keep: before, open: before ?? fresh, new: fresh, off: undefined }[change]
  if (nonce !== before) put(act, { ...alias, about: { ...closed, ...defined({ nonce }) } }, alias)
  const path = nonce === undefined ? undefined : engine.addresses.aliasPath(alias.obj_id, nonce)
  return {
    alias_id: alias.obj_id,
    callback_hash: path?.slice(path.lastIndexOf('/') + 1) ?? null,
  }
}

function put(act: Act, next: Alias, before?: Alias): number {
  putNamed(act, next, before)
  if (before !== undefined && before.text !== next.text) changed(act, before)
  changed(act, next)
  return next.obj_id
}

function changed(act: Act, { text: conv_id, name }: Alias): void {
  const { engine, op, caller } = act
  const act_name = `${op.type} ${op.obj}`
  const fields = { act: act_name, user: caller.user, ...(conv_id === '' ? {} : { conv_id }), name }
  act.afterwards(() => {
    engine.addresses.onAliasesChanged()
    if (conv_id !== '') engine.onProcessChanged(conv_id)
    engine.emit('process_managed', fields)
  })
}

/** The process that an op links the alias to; undefined where it names none. */
function targetIn(act: Act): string | undefined {
  const { obj_to_id, obj_to_type = 'conv' } = act.op
  if (obj_to_id === undefined || obj_to_id === null) return undefined
  const conv_id = idText(obj_to_id)
  if (obj_to_type !== 'conv' || conv_id === undefined) throw invalid('obj_to_id', 'a process')
  if (act.tx.process(conv_id) === undefined) throw noObject('conv', conv_id)
  return conv_id
}
