/** The webhook of a process, and that of an alias, which opens whatever the alias names. */
import { processKey } from '../codec/keys.ts'
import { encodeRecord, type ProcessRecord } from '../codec/records.ts'
import { changedWebhook, newNonce } from '../engine/definitions/webhooks.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import { type Act, acted, editable, idText, idValue } from './act.ts'
import { aliasHash } from './aliases.ts'
import type { Answer } from './answers.ts'

/** The last segment of the webhook's address; null while it is closed. */
export function getCallbackHash(act: Act): Answer {
  if (isOfAlias(act)) return aliasHash(act, 'keep')
  return hashAnswer(act, editable(act, 'conv_id'))
}

export function createCallbackHash(act: Act): Answer {
  if (isOfAlias(act)) return aliasHash(act, 'open')
  return changeWebhook(act, (open) => (open === undefined ? 'new' : undefined))
}

export const modifyCallbackHash = (act: Act): Answer =>
  isOfAlias(act) ? aliasHash(act, 'new') : changeWebhook(act, () => 'new')

export const deleteCallbackHash = (act: Act): Answer =>
  isOfAlias(act) ? aliasHash(act, 'off') : changeWebhook(act, () => 'off')

const isOfAlias = ({ op }: Act): boolean => idText(op.alias_id) !== undefined

function changeWebhook(
  act: Act,
  change: (open: ProcessRecord['webhook']) => 'new' | 'off' | undefined,
): Answer {
  const process = editable(act, 'conv_id')
  const { conv_id, record, graph } = process
  const address = change(record.webhook)
  const nonce = newNonce(act.engine.chance)
  const how = address === undefined ? {} : { address }
  const webhook = changedWebhook(record.webhook, graph, how, nonce)
  if (webhook !== record.webhook) {
    act.tx.store.put(processKey(conv_id), encodeRecord({ ...record, webhook }))
    acted(act, conv_id, record.version)
  }
  return hashAnswer(act, { ...process, record: { ...record, webhook } })
}

function hashAnswer({ engine }: Act, { conv_id, record: { webhook } }: Process): Answer {
  const path = webhook && engine.addresses.webhookPath(conv_id, webhook)
  return {
    conv_id: idValue(conv_id),
    callback_hash: path?.slice(path.lastIndexOf('/') + 1) ?? null,
  }
}
