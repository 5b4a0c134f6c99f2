/**
 * Downloads of schemes: a process, or all in the root folder, a stage or a project, as JSON or as a
 * zip. An address names the object, the version of a process, the time and, by a proof of this
 * server, the user who asked; nothing is stored. It holds for ten minutes, any number of times,
 * while the user may edit what is in it.
 */
import { timingSafeEqual } from 'node:crypto'
import { stringifyJson } from '../codec/json.ts'
import { grantKey } from '../codec/keys.ts'
import { grant_bits } from '../codec/records.ts'
import { isFault } from '../core/faults.ts'
import type { Caller } from '../core/model.ts'
import { mayAdminister } from '../engine/access/users.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import type { Transaction } from '../engine/transactions/transaction.ts'
import type { View } from '../store/store.ts'
import { type Act, editable, idOf, idText, invalid, noObject, requireAdministrator } from './act.ts'
import type { Answer } from './answers.ts'
import { definitionOf } from './definition.ts'
import { placeWithId } from './projects.ts'
import type { SchemeChoice } from './scheme-files.ts'

export interface File {
  readonly of: 'conv' | 'folder' | 'stage' | 'project'
  readonly obj_id: string
  readonly format: 'json' | 'zip'
  readonly made_ms: number
  /** The version in 8 hex digits, and 56 of the proof. */
  readonly token: string
}

export interface FileContent {
  readonly content: string | Buffer
  /** Undefined for JSON. */
  readonly content_type?: string
}

const kept_ms = 10 * 60_000
const head_digits = 8
const token_digits = 64
/** In the place of the version, beside it: aliases are left out. */
const no_aliases = 0x80000000

export function downloadScheme(act: Act): Answer {
  const { op, tx, engine, caller } = act
  const { format = 'json', with_alias } = op
  if (format !== 'json' && format !== 'zip') throw invalid('format', 'json or zip')
  const { of, obj_id, version } = objectIn(act)
  const flag = with_alias === false || with_alias === 'false' ? no_aliases : 0
  const file = { of, obj_id, format, made_ms: tx.now_ms } as const
  const token = tokenOf(engine, file, version + flag, caller)
  if (token === undefined) throw new Error('there is no secret for addresses')
  const name = `${of}_${encodeURIComponent(obj_id)}_${tx.now_ms}_${token}.${format}`
  const download_url = engine.addresses.printed(`/user_downloads/${name}`)
  return { download_url, statistics_id: token.slice(head_digits) }
}

interface Wanted extends Pick<File, 'of' | 'obj_id'> {
  /** Of a process; 0 else. */
  readonly version: number
}

/** Throws for what is not there, or not for this caller. */
function objectIn(act: Act): Wanted {
  const { obj_type = 'conv', obj_id: given } = act.op
  if (obj_type === 'conv') {
    const { conv_id, record } = editable(act, 'obj_id')
    return { of: 'conv', obj_id: conv_id, version: record.version }
  }
  if (obj_type === 'folder') {
    const obj_id = given === undefined || given === null ? '0' : idOf(act, 'obj_id')
    if (obj_id === '0') return { of: 'folder', obj_id, version: 0 }
    throw noObject('folder', obj_id)
  }
  if (obj_type !== 'stage' && obj_type !== 'project') {
    throw noObject(String(obj_type), idText(given) ?? '-')
  }
  requireAdministrator(act)
  const obj_id = idOf(act, 'obj_id')
  const place = placeWithId(act, obj_id)
  const is_stage = typeof place?.stage_id === 'string'
  if (place === undefined || is_stage !== (obj_type === 'stage')) throw noObject(obj_type, obj_id)
  return { of: obj_type, obj_id, version: 0 }
}

function tokenOf(
  engine: ServedEngine,
  { of, obj_id, format, made_ms }: Omit<File, 'token'>,
  head: number,
  { user = '' }: Caller,
): string | undefined {
  const parts = ['download', user, of, obj_id, format, head, made_ms]
  const proof = engine.addresses.proofOf(JSON.stringify(parts))
  return proof && (head.toString(16).padStart(head_digits, '0') + proof).slice(0, token_digits)
}

/** Undefined where this caller gets none. */
export async function fileContent(
  engine: ServedEngine,
  file: File,
  { user }: Caller,
): Promise<FileContent | undefined> {
  const caller: Caller = user === undefined ? {} : { user }
  const { of, obj_id, format, made_ms, token } = file
  const head = Number.parseInt(token.slice(0, head_digits), 16)
  const wanted = tokenOf(engine, file, head, caller)
  const is_ours = wanted !== undefined && timingSafeEqual(Buffer.from(wanted), Buffer.from(token))
  const has_aliases = head < no_aliases
  const version = has_aliases ? head : head - no_aliases
  let text: string | undefined
  let is_permitted = false
  let is_administrator = false
  const apply = (tx: Transaction): [] => {
    const age_ms = tx.now_ms - made_ms
    is_administrator = mayAdminister(tx.store, caller)
    const may = is_administrator || of === 'folder' || (of === 'conv' && mayEdit(tx.store, obj_id))
    is_permitted = is_ours && age_ms >= 0 && age_ms <= kept_ms && may
    if (!is_permitted || of !== 'conv' || format !== 'json') return []
    const process = tx.process(obj_id)
    const found = process && definitionOf(tx.store, process, version)
    text = found && `[${stringifyJson(found.value)}]`
    return []
  }
  const mayEdit = (view: View, conv_id: string): boolean =>
    user !== undefined && ((view.get(grantKey(user, conv_id))?.[0] ?? 0) & grant_bits.edit) !== 0
  await engine.submitOthers([place], caller, { apply, is_change: false })
  if (!is_permitted) return undefined
  if (of === 'conv' && format === 'json') return text === undefined ? text : { content: text }
  const choice: SchemeChoice = {
    ...{ kind: of, id: obj_id, has_aliases, has_variables: is_administrator, has_secrets: false },
    ...(of === 'conv' ? { version } : {}),
    mayRead: (view, conv_id) => is_administrator || mayEdit(view, conv_id),
  }
  const { schemeFiles } = await import('./scheme-files.ts')
  try {
    const { files, definitions } = await schemeFiles(engine.process_parts.store, choice)
    if (of === 'conv' && definitions.length === 0) return undefined
    if (format === 'json') return { content: `[${definitions.join(',')}]` }
    const { zipOf } = await import('../files/zip-writer.ts')
    const zip = await zipOf(files, engine.clock.now_ms())
    return { content: zip, content_type: 'application/zip' }
  } catch (thrown) {
    // A stage that has gone since.
    if (isFault(thrown) && thrown.code === 'error') return undefined
    throw thrown
  }
}

/** Counts as one op for the rate and the queue. */
const place = { type: 'show', ref: null, obj: 'task', proc: 'error', key: 'obj' } as const
