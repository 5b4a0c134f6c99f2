/**
 * Unguessable addresses that need no signature: a process's webhook and a node's callback address
 * (wire 1.11). Their hash is an HMAC under a secret of the file, so addresses survive restarts and
 * imports, and a copy of the file reveals none. A new nonce in the process record changes the
 * webhook.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { aboutOf, describedText } from '../../codec/described.ts'
import { address_secret, type Key, keysOfType, processKey, processOfKey } from '../../codec/keys.ts'
import { isName } from '../../codec/op.ts'
import {
  type AliasAbout,
  decodeRecord,
  type ProcessRecord,
  type WebhookRecord,
} from '../../codec/records.ts'
import type { CallbackRules } from '../../process/logic.ts'
import { credentialsOf, isStored, lockOf } from '../../process/webhook-lock.ts'
import type { View } from '../../store/store.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn } from '../transactions/scans.ts'
import type { Secrets } from './secrets.ts'
import { type Secret, type SecretLists, secretsIn, secretsToCompare } from './secrets-to-compare.ts'
import { newWebhookLocks, type WebhookLocks } from './webhook-locks.ts'

export interface Addresses {
  readonly locks: WebhookLocks
  /** Makes the file's secret if there is none. Rejects with `key_missing`. */
  prepare(): Promise<void>
  readonly public_url: string | undefined
  /** Addresses begin with this server's URL from now on. */
  serveAt(url: string): void
  /** Path of the webhook's address, after the url. Needs the secret. */
  webhookPath(conv_id: string, webhook: WebhookRecord): string
  callbackPath(conv_id: string, node_id: string): string
  printed(path: string): string
  /** 64 hex digits that only this file can make of a text; undefined without the secret. */
  proofOf(text: string): string | undefined
  /** Of a node with an `api_callback`; undefined before there are a secret and a url. */
  callbackUrl(process: Process, node_id: string): string | undefined
  /** Of an alias with a webhook of its own: it stands behind the number of the alias. */
  aliasPath(obj_id: number, nonce: string): string
  /** Call after a process was stored or removed, or its webhook changed. */
  onProcessChanged(conv_id: string): void
  /** Call after an alias or its webhook changed. */
  onAliasesChanged(): void
  /** The open webhook with this hash. Rejects with `store_failed` like `users.secrets`. */
  findWebhook(conv_id: string, hash: string): Promise<OpenWebhook | undefined>
  /** The rules of the node with this hash, also of one that takes no callbacks any more. */
  findCallback(conv_id: string, node_id: string, hash: string): Promise<CallbackRules | undefined>
}

/** An open webhook, and what a request needs. */
export interface OpenWebhook {
  /** The process that it makes tasks of. */
  readonly conv_id: string
  readonly user: string | undefined
  /** `login:secret` of the definition; `none` lets nobody in. Absent without a lock. */
  readonly lock?: { readonly credentials: string | undefined }
}

const default_rules: CallbackRules = { is_sync: true, id_path: [] }
// A stand-in of equal length for missing values makes every guess cost the same.
const no_secret = '0'.repeat(43)
const no_nonce = '0'.repeat(32)

/** Throws a RangeError for an invalid `public_url`. */
export function newAddresses(
  { store, catalog, limits, engine }: Parts,
  secrets: Secrets,
  given_url: string | undefined,
): Addresses {
  const public_url = readPublicUrl(given_url)
  const locks = newWebhookLocks(secrets)
  let url = public_url

  const hasSecret = (): boolean => secrets.known(address_secret).length > 0

  /** Constant time; false without a secret. */
  function isHashOf(hash: string, parts: readonly string[]): boolean {
    const [secret] = secrets.read(address_secret)
    const is_same = timingSafeEqual(
      Buffer.from(hashOf(secret ?? no_secret, parts)),
      Buffer.from(hash),
    )
    return is_same && secret !== undefined
  }

  function pathOf(kind: string, names: readonly string[], parts: readonly string[]): string {
    const [secret] = secrets.known(address_secret)
    if (secret === undefined) throw new Error('there is no secret for addresses')
    const segments = [...names.map(encodeURIComponent), hashOf(secret, parts)]
    return `/api/1/json/${kind}/${segments.join('/')}`
  }

  /** In memory, so that a wrong hash reads no record and its time reveals nothing. */
  const nonces = new Map<string, readonly Secret[]>()
  let to_compare: SecretLists | undefined
  const changed = new Set<string>()
  /** Keys of the aliases that have a webhook, by their numbers. */
  let aliases: ReadonlyMap<string, Key> | undefined

  async function noncesToCompare(): Promise<SecretLists> {
    if (to_compare !== undefined && aliases !== undefined && changed.size === 0) return to_compare
    return store.view((view) => {
      const names =
        to_compare === undefined
          ? allIn(view, keysOfType('process')).map(({ key }) => processOfKey(key))
          : changed
      for (const conv_id of names) {
        const plain = webhookOf(view, conv_id)?.nonce
        if (plain === undefined) nonces.delete(nameIn(conv_id))
        else nonces.set(nameIn(conv_id), [{ n: 0, plain, until_ms: undefined }])
      }
      changed.clear()
      aliases ??= aliasesWithWebhook(view)
      to_compare = secretsToCompare(nonces, 0, no_nonce).of
      return to_compare
    })
  }

  function aliasesWithWebhook(view: View): Map<string, Key> {
    const found = new Map<string, Key>()
    for (const name of aliases_named) nonces.delete(name)
    aliases_named.clear()
    for (const { key, value } of allIn(view, keysOfType('alias'))) {
      const { obj_id, nonce } = aboutOf<AliasAbout>(value)
      if (obj_id === undefined || nonce === undefined) continue
      const name = aliasIn(String(obj_id))
      nonces.set(name, [{ n: 0, plain: nonce, until_ms: undefined }])
      aliases_named.add(name)
      found.set(String(obj_id), key)
    }
    return found
  }
  const aliases_named = new Set<string>()

  /** The process of the alias whose webhook has this hash; only whether any has one takes time. */
  function convOfAlias(view: View, lists: SecretLists, id: string, hash: string) {
    if (aliases === undefined || aliases.size === 0) return undefined
    const [nonce] = secretsIn(lists, aliasIn(id))
    if (!isHashOf(hash, aliasParts(id, nonce as string))) return undefined
    const value = view.get(aliases.get(id) ?? processKey(id))
    return value && describedText(value)
  }

  const addresses: Addresses = {
    locks,
    prepare: () =>
      secrets.inTurn(async () => {
        if (!hasSecret()) await secrets.add(() => address_secret)
      }),
    public_url,
    serveAt(given) {
      url = given
    },
    webhookPath: (conv_id, webhook) =>
      pathOf('public', [conv_id], webhookParts(conv_id, webhook.nonce)),
    callbackPath: (conv_id, node_id) =>
      pathOf('callback', [conv_id, node_id], callbackParts(conv_id, node_id)),
    printed: (path) => (url ?? '') + path,
    proofOf(text) {
      const [secret] = secrets.known(address_secret)
      return secret && createHmac('sha256', secret).update(text).digest('hex')
    },
    callbackUrl({ conv_id, graph }, node_id) {
      const is_served = url !== undefined && hasSecret()
      if (!is_served || !graph.nodes.get(node_id)?.logics.some((one) => one.callback))
        return undefined
      return url + addresses.callbackPath(conv_id, node_id)
    },
    async findWebhook(conv_id, hash) {
      if (!isName(conv_id, limits.conv_id_chars_max)) return undefined
      const lists = await noncesToCompare()
      const [nonce] = secretsIn(lists, nameIn(conv_id))
      const is_own = isHashOf(hash, webhookParts(conv_id, nonce as string))
      return store.view((view) => {
        const by_alias = convOfAlias(view, lists, conv_id, hash)
        const found = is_own ? conv_id : by_alias
        const process = found === undefined ? undefined : catalog.find(view, found)
        if (process === undefined) return undefined
        const { nonce: open, user } = process.record.webhook ?? {}
        const lock = lockOf(process.graph)
        if ((is_own && open !== nonce) || lock === 'unknown') return undefined
        const of = { conv_id: process.conv_id }
        if (lock === undefined) return { ...of, user }
        const secret = isStored(lock) ? locks.secretOf(of.conv_id) : undefined
        const { stage_id } = process.record
        const variable = (name: string) => engine.variables.of(view, name, stage_id)
        return {
          ...of,
          user: undefined,
          lock: { credentials: credentialsOf(lock, variable, secret) },
        }
      })
    },
    aliasPath: (obj_id, nonce) =>
      pathOf('public', [String(obj_id)], aliasParts(String(obj_id), nonce)),
    onProcessChanged: (conv_id) => void changed.add(conv_id),
    onAliasesChanged() {
      aliases = undefined
    },
    async findCallback(conv_id, node_id, hash) {
      if (!isHashOf(hash, callbackParts(conv_id, node_id))) return undefined
      return store.view((view) => {
        const process = catalog.find(view, conv_id)
        if (process === undefined) return undefined
        const logics = process.graph.nodes.get(node_id)?.logics ?? []
        return logics.find((one) => one.callback)?.callback ?? default_rules
      })
    },
  }
  return addresses
}

function webhookOf(view: View, conv_id: string): WebhookRecord | undefined {
  const record = view.get(processKey(conv_id))
  return record && decodeRecord<ProcessRecord>(record).webhook
}

/** The prefix separates ids from the stand-ins for unknown owners. */
const nameIn = (conv_id: string): string => `p${conv_id}`
const aliasIn = (obj_id: string): string => `a${obj_id}`

// Only the last part may hold control characters.
const webhookParts = (conv_id: string, nonce: string) => ['webhook', conv_id, nonce]
const aliasParts = (obj_id: string, nonce: string) => ['alias', obj_id, nonce]
const callbackParts = (conv_id: string, node_id: string) => ['callback', conv_id, node_id]

/** 40 lowercase hex digits. */
function hashOf(secret: string, parts: readonly string[]): string {
  return createHmac('sha256', secret).update(parts.join('\0')).digest('hex').slice(0, 40)
}

/** Strips a trailing slash. Throws a RangeError unless it is an http URL without a query. */
export function readPublicUrl(given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  const url = URL.canParse(given) ? new URL(given) : undefined
  const is_plain = url !== undefined && /^https?:$/.test(url.protocol) && url.username === ''
  if (is_plain && !/[?#]/.test(given)) return url.href.replace(/\/+$/, '')
  throw new RangeError(`public_url: ${JSON.stringify(given)} is no URL such as https://x.example`)
}
