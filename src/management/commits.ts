/**
 * Ops on drafts as a whole, and on confirmed versions: confirm, show, list, delete. Nobody but its
 * user sees a draft; administrators may show and delete the drafts of others.
 */
import { isObject, stringifyJson } from '../codec/json.ts'
import { isFault, type Mistake } from '../core/faults.ts'
import type { Caller, JsonObject, JsonValue } from '../core/model.ts'
import { newNonce } from '../engine/definitions/webhooks.ts'
import {
  type Ahead,
  compiledAhead,
  confirmIn,
  isOf,
  mistakesOf,
} from '../engine/drafts/draft-confirm.ts'
import {
  changesBetween,
  madeBy,
  type NodeChange,
  storedVersion,
} from '../engine/drafts/draft-definition.ts'
import {
  type Draft,
  draftsOfProcess,
  dropDraft,
  findDraft,
  versionRefused,
} from '../engine/drafts/draft-store.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import {
  type Act,
  acted,
  editable,
  idText,
  idValue,
  invalid,
  numberIn,
  refusal,
  required,
  secondsOf,
} from './act.ts'
import type { Answer } from './answers.ts'
import { nodeAnswer, withoutSecrets } from './definition.ts'
import { byNode } from './mistakes.ts'
import { userName } from './users.ts'

const commits_max = 1_000
const version_max = Number.MAX_SAFE_INTEGER

const userOf = ({ caller }: Pick<Act, 'caller'>): string => caller.user ?? ''

const processIn = (act: Act): Process =>
  editable(act, act.op.conv_id === undefined ? 'obj_id' : 'conv_id')

const versionIn = (act: Act): number => {
  if (act.op.version === undefined) throw required('version')
  return numberIn(act, 'version', { min: 1, max: version_max, usual: 0 })
}

export const ownDraft = (act: Act, conv_id: string): Draft | undefined =>
  findDraft(act.tx.store, conv_id, userOf(act), act.tx.now_ms)

/** What `confirm` compiles before its transaction; the name of the draft's process. */
export async function compileAhead(
  { process_parts: parts }: ServedEngine,
  op: JsonObject,
  caller: Caller,
  known: ReadonlyMap<string, Ahead>,
): Promise<readonly [string, Ahead] | undefined> {
  const conv_id = idText(op.conv_id ?? op.obj_id)
  if (conv_id === undefined || caller.user === undefined || known.has(conv_id)) return undefined
  const ahead = await compiledAhead(parts, conv_id, caller.user)
  return ahead && [conv_id, ahead]
}

/** A draft that its own request has edited is compiled within the transaction. */
const compiles_max = 2

export function confirmCommit(act: Act): Answer {
  const { tx, engine, op } = act
  const process = processIn(act)
  const { conv_id, record } = process
  const version = versionIn(act)
  const draft = ownDraft(act, conv_id)
  if (draft?.record.version !== version) throw unknownVersion(act, process, version)
  const dry_run = op.dry_run === true
  const how = { moves: movesIn(act), dry_run, nonce: newNonce(engine.chance), now_ms: tx.now_ms }
  const ahead = act.ahead.get(conv_id)
  if (!isOf(ahead, draft) && act.spent.compiles++ >= compiles_max) {
    throw refusal(`a request confirms at most ${compiles_max} drafts that it edits`)
  }
  try {
    const given = { process, draft, ahead }
    const { result, warnings, afterwards } = confirmIn(tx.store, engine.process_parts, given, how)
    if (!dry_run) {
      act.afterwards(afterwards)
      acted(act, conv_id, result.version)
    }
    const texts = [...warnings, ...namesOf(result.warnings, warnings)]
    return {
      ...{ obj_id: idValue(conv_id), obj_type: 'conv', version: result.version },
      ...(dry_run ? { dry_run } : {}),
      ...(result.version === record.version ? { is_changed: false } : {}),
      ...(texts.length === 0 ? {} : { warnings: byNode(conv_id, texts) }),
    }
  } catch (thrown) {
    const mistakes = mistakesOf(thrown)
    if (mistakes === undefined) throw thrown
    const warnings = isFault(thrown) ? thrown.warnings : undefined
    const more = warnings && warnings.length > 0 ? { warned: byNode(conv_id, warnings) } : {}
    const errors = byNode(conv_id, mistakes)
    throw refusal(String(mistakes.length), { errors, ...more })
  }
}

/** Warnings of the result that are in no place of the definition: what is not there yet. */
function namesOf(all: readonly string[], known: readonly Mistake[]): Mistake[] {
  const texts = new Set(known.map(({ text }) => text))
  return all.filter((text) => !texts.has(text)).map((text) => ({ text }))
}

function movesIn(act: Act): Record<string, string> {
  const { move = {} } = act.op
  const is_map = isObject(move) && Object.values(move).every((to) => typeof to === 'string')
  if (!is_map) throw invalid('move', 'an object of node ids')
  return move as Record<string, string>
}

function unknownVersion(act: Act, { conv_id, record }: Process, version: number): Error {
  const all = draftsOfProcess(act.tx.store, conv_id, act.tx.now_ms)
  const others = all.filter(({ user }) => user !== userOf(act))
  const known = versionRefused(version, { others, record })
  return known ?? refusal(`Version ${version} does not exist`)
}

/** The nodes that a draft, or a confirmed version, changes. */
export function showCommit(act: Act): Answer {
  const { tx, is_administrator } = act
  const process = processIn(act)
  const { conv_id, record } = process
  const version = versionIn(act)
  const drafts = draftsOfProcess(tx.store, conv_id, tx.now_ms)
  const draft = drafts.find((one) => one.record.version === version)
  const head = { obj_id: idValue(conv_id), conv_id: idValue(conv_id), version }
  if (draft !== undefined && (draft.user === userOf(act) || is_administrator)) {
    const { changes } = madeBy(tx.store, draft)
    return { ...head, list: changes.map((one) => changeRow(act, process, one)) }
  }
  if (draft !== undefined || version > record.version) throw unknownVersion(act, process, version)
  const after = storedVersion(tx.store, conv_id, version)
  const before =
    version === 1 ? { scheme: { nodes: [] } } : storedVersion(tx.store, conv_id, version - 1)
  const changes = changesBetween(before, after)
  return { ...head, list: changes.map((one) => changeRow(act, process, one)) }
}

function changeRow(act: Act, process: Process, { node, change }: NodeChange): JsonObject {
  const shown = nodeAnswer(act, process, withoutSecrets(node) as JsonObject)
  return { ...shown, status: change === 'removed' ? 3 : 1 }
}

/** The draft is forgotten; a version that is not there is forgotten already: tools delete twice. */
export function deleteCommits(act: Act): Answer {
  const { tx, op, is_administrator } = act
  const { conv_id } = processIn(act)
  const { version = 0 } = op
  const number = Number(idText(version))
  const drafts = draftsOfProcess(tx.store, conv_id, tx.now_ms)
  const draft = drafts.find((one) => one.record.version === number)
  if (draft !== undefined && draft.user !== userOf(act) && !is_administrator) {
    throw refusal(`Version ${number} is another user's`)
  }
  if (draft !== undefined) {
    dropDraft(tx.store, draft)
    acted(act, conv_id, number)
  }
  return { obj_id: idValue(conv_id), version }
}

/** Confirmed versions, newest first. */
export function listCommits(act: Act): Answer {
  const { conv_id, record } = processIn(act)
  const limit = numberIn(act, 'limit', { min: 1, max: commits_max, usual: 50 })
  const offset = numberIn(act, 'offset', { max: 100_000, usual: 0 })
  const newest = record.is_draft ? 0 : record.version
  const count = Math.max(0, Math.min(limit, newest - offset))
  return {
    obj_id: idValue(conv_id),
    list: Array.from({ length: count }, (_, at) => {
      const version = newest - offset - at
      const is_newest = version === record.version
      const user = is_newest ? record.confirmed_by : undefined
      return {
        ...{ conv_id: idValue(conv_id), version },
        create_time: is_newest ? secondsOf(record.change_ms) : null,
        user_id: user === undefined ? null : idValue(user),
        user_name: user === undefined ? '' : userName(act, user),
      }
    }),
  }
}

/** `commits` and `others` of a list of a process. */
export function draftsAnswer(act: Act, process: Process): JsonObject {
  const { tx } = act
  const { conv_id } = process
  const drafts = draftsOfProcess(tx.store, conv_id, tx.now_ms)
  if (drafts.length === 0) return { commits: { version: 0, list: [] } }
  const own = drafts.find(({ user }) => user === userOf(act))
  const others = drafts
    .filter((one) => one !== own)
    .map(({ user, record }) => ({
      ...{ version: record.version, user_id: idValue(user), user_name: userName(act, user) },
      ...{ change_time: secondsOf(record.change_ms), nodes: record.changed },
    }))
  const commits =
    own === undefined
      ? { version: 0, list: [] }
      : { version: own.record.version, list: commitRows(act, process, own) }
  return { commits, ...(others.length === 0 ? {} : { others }) }
}

function commitRows(act: Act, process: Process, own: Draft): JsonObject[] {
  const user_id = idValue(own.user)
  const nick = userName(act, own.user)
  return madeBy(act.tx.store, own).changes.map(({ node, node_id, change }) => {
    const shown = withoutSecrets(node) as JsonObject
    const { title, description, position, extra, obj_type } = nodeAnswer(act, process, shown)
    return {
      ...{ obj_id: node_id, name: title as JsonValue, description: description as JsonValue },
      condition: stringifyJson(shown.condition ?? {}),
      ...{ position: position as JsonValue, extra: extra as JsonValue },
      status: change === 'removed' ? 'deleted' : 'actived',
      ...{ user_id, nick, change_time: secondsOf(own.record.change_ms) },
      type: obj_type as JsonValue,
    }
  })
}

export function checkScheme(act: Act): Answer {
  const { conv_id } = editable(act, 'obj_id')
  if (ownDraft(act, conv_id) === undefined) return {}
  throw refusal(`The process with ID ${conv_id} has an uncommitted version`)
}
