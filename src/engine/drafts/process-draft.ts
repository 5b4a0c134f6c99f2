/** The draft of one process and author as the library has it: each call is one transaction. */
import { isObject, stringifyJson } from '../../codec/json.ts'
import { fault } from '../../core/faults.ts'
import type { JsonObject } from '../../core/model.ts'
import { inSlices } from '../../core/slices.ts'
import { callback_url } from '../../process/templates/path.ts'
import { hideSecret } from '../../process/webhook-lock.ts'
import type { Tx, View } from '../../store/store.ts'
import { requireUser, userId } from '../access/users.ts'
import type { DraftInfo, ProcessDraft } from '../api/draft-api.ts'
import { readJson } from '../definitions/definitions.ts'
import { type ProcessParts, requireProcess } from '../definitions/processes.ts'
import { newNonce } from '../definitions/webhooks.ts'
import { type Ahead, compiledAhead, confirmIn, noDraft } from './draft-confirm.ts'
import { changesBetween, isSameValue, madeBy, restOf, storedVersion } from './draft-definition.ts'
import { type Edit, putNode, putWhole, removeNode } from './draft-edits.ts'
import {
  type Draft,
  draftsOfProcess,
  dropDraft,
  entriesOf,
  findDraft,
  refused,
  rest,
  storeDraft,
} from './draft-store.ts'

export function newProcessDraft(
  parts: ProcessParts,
  { conv_id, user }: { readonly conv_id: string; readonly user: string },
): ProcessDraft {
  const { store, catalog, chance, clock, limits, addresses, onChanged } = parts
  if (user !== '') userId(user)

  function edit(change: (edit: Edit) => Draft | undefined): Promise<DraftInfo> {
    const nonce = newNonce(chance)
    return store.update((tx) => {
      const process = requireProcess(tx, catalog, conv_id)
      if (user !== '') requireUser(tx, user)
      const how = { user, version: undefined, nonce, now_ms: clock.now_ms() }
      const draft = change({ tx, process, limits, ...how })
      if (draft === undefined) throw fault('node_not_found')
      return infoOf(draft)
    })
  }

  function require(view: View): Draft {
    const draft = findDraft(view, conv_id, user, clock.now_ms())
    if (draft === undefined) throw noDraft(conv_id)
    return draft
  }

  function rebased(tx: Tx): DraftInfo {
    const draft = require(tx)
    const process = requireProcess(tx, catalog, conv_id)
    const { version } = process.record
    if (draft.record.base === version) return infoOf(draft)
    const before = storedVersion(tx, conv_id, draft.record.base)
    const after = storedVersion(tx, conv_id, version)
    const entries = entriesOf(tx, draft)
    const both = changesBetween(before, after).filter(({ node_id }) => entries.has(node_id))
    const names = both.map(({ node_id }) => `node "${node_id}"`)
    const is_rest_changed = !isSameValue(restOf(before), restOf(after))
    if (is_rest_changed && entries.has(rest)) names.push('what is beside the nodes')
    if (names.length > 0) {
      const what = `${names.slice(0, 10).join(', ')}${names.length > 10 ? ' and more' : ''}`
      throw fault('draft_outdated', `version ${version} and the draft both change ${what}`)
    }
    const { changes } = madeBy(tx, draft)
    const by = { created: 1, changed: 0, removed: -1 } as const
    const more = changes.reduce((sum, { change }) => sum + by[change], 0)
    const nodes = process.graph.nodes.size + more
    return infoOf(storeDraft(tx, draft, { base: version, nodes }, clock.now_ms()))
  }

  return {
    show: () =>
      store.view((view) => {
        const draft = findDraft(view, conv_id, user, clock.now_ms())
        if (draft === undefined) return undefined
        const { definition, changes, is_rest_changed } = madeBy(view, draft)
        const { version } = requireProcess(view, catalog, conv_id).record
        return {
          ...infoOf(draft),
          definition_text: stringifyJson(definition),
          changes: changes.map(({ node_id, change }) => ({ node_id, change })),
          is_rest_changed,
          is_outdated: version !== draft.record.base,
        }
      }),
    async put(given) {
      const definition = await read(parts, given)
      if (hideSecret(definition) !== undefined) {
        throw refused('the secret of a webhook is no part of a draft; `put` the definition')
      }
      return edit((how) => putWhole(how, definition))
    },
    async putNode(given) {
      const node = await read(parts, given)
      return edit((how) => putNode(how, node))
    },
    removeNode: (node_id) => edit((how) => removeNode(how, node_id)),
    async check() {
      const { mistakes, warnings } = await ahead()
      return { mistakes, warnings }
    },
    async confirm({ moves = {}, dry_run = false } = {}) {
      const compiled = await ahead()
      if (compiled.next?.text.includes(callback_url)) await addresses.prepare()
      const nonce = newNonce(chance)
      const confirmed = await store.update((tx) => {
        const process = requireProcess(tx, catalog, conv_id)
        const how = { moves, dry_run, nonce, now_ms: clock.now_ms() }
        return confirmIn(tx, parts, { process, draft: require(tx), ahead: compiled }, how)
      })
      confirmed.afterwards()
      if (!dry_run) onChanged(conv_id)
      return confirmed.result
    },
    rebase: () => store.update(rebased),
    discard: () =>
      store.update((tx) => {
        const is_there = findDraft(tx, conv_id, user, clock.now_ms()) !== undefined
        dropDraft(tx, { conv_id, user })
        return is_there
      }),
  }

  async function ahead(): Promise<Ahead> {
    const compiled = await compiledAhead(parts, conv_id, user)
    if (compiled === undefined) throw noDraft(conv_id)
    return compiled
  }
}

async function read({ limits }: ProcessParts, given: unknown): Promise<JsonObject> {
  const value = await inSlices(readJson(given, limits))
  if (!isObject(value)) throw refused('one JSON object was expected')
  return value
}

export function listDrafts(
  { store, catalog, clock }: ProcessParts,
  conv_id: string,
): Promise<DraftInfo[]> {
  return store.view((view) => {
    requireProcess(view, catalog, conv_id)
    return draftsOfProcess(view, conv_id, clock.now_ms()).map(infoOf)
  })
}

export function infoOf({ conv_id, user, record }: Draft): DraftInfo {
  const { version, base, opened_ms, change_ms, nodes } = record
  return {
    ...{ conv_id, version, base, user: user === '' ? null : user },
    ...{ opened_time_ms: opened_ms, change_time_ms: change_ms, nodes },
  }
}
