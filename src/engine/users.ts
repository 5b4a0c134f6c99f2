/**
 * Users and their secrets, for administration and for the servers. Secrets are decrypted when the
 * file is opened and kept in memory; a stored secret is encrypted and bound to its user and number.
 */
import {
  address_secret,
  grantOfKey,
  grantsOf,
  keysOfType,
  metaKey,
  secretKey,
  secretOfKey,
  secretsOf,
  userKey,
  userOfKey,
} from '../codec/keys.ts'
import {
  decodeRecord,
  encodeRecord,
  grant_bits,
  type SecretRecord,
  type UserRecord,
} from '../codec/records.ts'
import type { Chance, Clock } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import type { SignatureKind } from '../core/model.ts'
import type { Entry, Store, Tx, View } from '../store/store.ts'
import type { Can, NewSecret, Sign, UserInfo, Users } from './api.ts'
import { openBindings } from './certificate-bindings.ts'
import { type EncryptionKey, openEncryptionKey } from './encryption-key.ts'

export interface UsersOptions {
  readonly store: Store
  readonly clock: Clock
  readonly chance: Chance
  readonly key_path: string | undefined
  readonly given_key: string | undefined
  readonly certificate_name_bytes_max: number
}

interface Secret {
  readonly n: number
  readonly plain: string
  readonly until_ms: number | undefined
}

export interface UsersAndAddresses extends Users {
  /** The secret from which addresses are derived; undefined until it is made, or cannot be read. */
  addressSecret(): string | undefined
  /** Makes that secret unless there is one. Rejects with `key_missing`. */
  makeAddressSecret(): Promise<void>
}

const check_key = metaKey('key_check')
const first_user = 13_000n
const secret_bytes = 32

export async function openUsers(options: UsersOptions): Promise<UsersAndAddresses> {
  const { store, clock, chance } = options
  const stored = await store.view((view) => ({
    check: view.get(check_key)?.toString('utf8'),
    users: readAll(view, 'user').map(({ key, value }) => ({
      id: userOfKey(key),
      sign: decodeRecord<UserRecord>(value).sign,
    })),
    secrets: readAll(view, 'secret').map(({ key, value }) => ({
      ...secretOfKey(key),
      record: decodeRecord<SecretRecord>(value),
    })),
  }))
  const bindings = await openBindings(store, options.certificate_name_bytes_max)
  const encryptionKey = await openEncryptionKey({ ...options, check: stored.check })
  const known = new Map<string, Secret[]>()
  if (encryptionKey.problem() === undefined) {
    for (const { user, n, record } of stored.secrets) {
      const plain = encryptionKey.decrypt(aboutSecret(user, n), record.sealed)
      // A damaged secret is ignored; the others stay valid.
      if (plain === undefined) continue
      known.set(user, [...(known.get(user) ?? []), { n, plain, until_ms: record.until_ms }])
    }
  }

  /** The only signature of a user; users without an entry may use both. */
  const only = new Map<string, SignatureKind>()
  const setOnly = (id: string, sign: Sign | undefined): void => {
    if (sign === undefined || sign === 'both') only.delete(id)
    else only.set(id, sign)
  }
  for (const { id, sign } of stored.users) setOnly(id, sign)

  const validSecrets = (id: string): Secret[] => {
    const now_ms = clock.now_ms()
    return (known.get(id) ?? []).filter(
      (one) => one.until_ms === undefined || one.until_ms > now_ms,
    )
  }

  function freshSecret(): string {
    const taken = new Set([...known.values()].flat().map((one) => one.plain))
    for (;;) {
      const plain = chance.bytes(secret_bytes).toString('base64url')
      if (!taken.has(plain)) return plain
    }
  }

  /** Replaces the stored secrets of a user, and then those in memory. */
  async function storeSecrets(secrets: Secret[], readUser: (tx: Tx) => string): Promise<string> {
    const check = encryptionKey.check()
    const id = await store.update((tx) => {
      const id = readUser(tx)
      if (tx.get(check_key) === undefined) tx.put(check_key, Buffer.from(check))
      for (const { key } of tx.scan({ ...secretsOf(id), limit: Infinity })) tx.del(key)
      for (const one of secrets) putSecret(tx, id, one, encryptSecret(encryptionKey, id, one))
      return id
    })
    known.set(id, secrets)
    return id
  }

  const users: UsersAndAddresses = {
    async add({ id: wanted, name = '', sign = 'both' } = {}) {
      const allowed = signMember(sign)
      await encryptionKey.prepare()
      const given = wanted === undefined ? undefined : userId(wanted)
      const secret = { n: 1, plain: freshSecret(), until_ms: undefined }
      const record: UserRecord = { name, create_ms: clock.now_ms(), ...allowed }
      const id = await storeSecrets([secret], (tx) => {
        const id = given ?? nextUser(tx)
        if (tx.get(userKey(id)) !== undefined) throw fault('user_exists', `user ${id} exists`)
        tx.put(userKey(id), encodeRecord(record))
        return id
      })
      setOnly(id, sign)
      return { id, secret: secret.plain }
    },
    async sign(wanted, sign) {
      const id = userId(wanted)
      const allowed = signMember(sign)
      await store.update((tx) => {
        const { name, create_ms } = requireUser(tx, id)
        tx.put(userKey(id), encodeRecord({ name, create_ms, ...allowed }))
      })
      setOnly(id, sign)
    },
    list: () => store.view((view) => listUsers(view, (id) => validSecrets(id).length)),
    async rotate(wanted, { grace_ms = 0 } = {}): Promise<NewSecret> {
      await encryptionKey.prepare()
      const id = userId(wanted)
      const until_ms = clock.now_ms() + grace_ms
      const kept = validSecrets(id)
        .filter(() => grace_ms > 0)
        .map((one) => ({ ...one, until_ms: Math.min(one.until_ms ?? until_ms, until_ms) }))
      const n = Math.max(0, ...(known.get(id) ?? []).map((one) => one.n)) + 1
      const secret = { n, plain: freshSecret(), until_ms: undefined }
      await storeSecrets([...kept, secret], (tx) => {
        requireUser(tx, id)
        return id
      })
      return { id, secret: secret.plain }
    },
    async remove(wanted) {
      const id = userId(wanted)
      const names = await store.update((tx) => {
        requireUser(tx, id)
        tx.del(userKey(id))
        for (const range of [secretsOf(id), grantsOf(id)]) {
          for (const { key } of tx.scan({ ...range, limit: Infinity })) tx.del(key)
        }
        return bindings.refuseAllOf(tx, id)
      })
      known.delete(id)
      only.delete(id)
      bindings.refused(names)
    },
    async rekey({ secret_key } = {}) {
      await encryptionKey.prepare()
      const next = await encryptionKey.rekey(secret_key)
      const all = [...known].flatMap(([id, secrets]) => secrets.map((one) => ({ id, one })))
      const sealed = all.map(({ id, one }) => ({
        id,
        one,
        text: next.encrypt(aboutSecret(id, one.n), one.plain),
      }))
      const check = next.check()
      await store.update((tx) => {
        tx.put(check_key, Buffer.from(check))
        for (const { id, one, text } of sealed) putSecret(tx, id, one, text)
      })
      await next.commit()
      return { secrets: all.length }
    },
    bind: async (wanted, name) => {
      const user = userId(wanted)
      await bindings.set(name, { acts_as: 'user', user }, (tx) => void requireUser(tx, user))
    },
    bindAll: (name) => bindings.set(name, { acts_as: 'all' }),
    unbind: (name) => bindings.set(name, { acts_as: 'nobody' }),
    bindings: () =>
      bindings.list().map(({ name, record }) => ({
        name,
        acts_as: record.acts_as === 'user' ? record.user : record.acts_as === 'all' ? 'all' : null,
      })),
    callerOf: (names, { strict = false } = {}) => bindings.boundCaller(names, strict),
    secrets(id, kind) {
      const why = encryptionKey.problem()
      if (why !== undefined) throw fault('store_failed', why)
      if (kind !== undefined && (only.get(id) ?? kind) !== kind) return []
      return validSecrets(id).map((one) => one.plain)
    },
    addressSecret: () => known.get(address_secret)?.[0]?.plain,
    async makeAddressSecret() {
      await encryptionKey.prepare()
      if (known.has(address_secret)) return
      await storeSecrets(
        [{ n: 1, plain: freshSecret(), until_ms: undefined }],
        () => address_secret,
      )
    },
  }
  const inTurn = newSerialQueue()
  return {
    ...users,
    add: (options) => inTurn(() => users.add(options)),
    rotate: (id, options) => inTurn(() => users.rotate(id, options)),
    sign: (id, sign) => inTurn(() => users.sign(id, sign)),
    remove: (id) => inTurn(() => users.remove(id)),
    rekey: (options) => inTurn(() => users.rekey(options)),
    makeAddressSecret: () => inTurn(users.makeAddressSecret),
  }
}

/**
 * Runs changes of users one after another: the key must not change between encrypting a secret and
 * storing it.
 */
function newSerialQueue(): <T>(change: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (change) => {
    const done = last.then(change)
    last = done.catch(() => {})
    return done
  }
}

/** The id as text. Throws `not_possible` unless it is a whole number of 1 to 16 digits. */
export function userId(given: string | number): string {
  const id = String(given)
  if (/^[1-9][0-9]{0,15}$/.test(id)) return id
  throw fault(
    'not_possible',
    `a user id is a whole number of 1 to 16 digits, not ${id.slice(0, 40)}`,
  )
}

export function requireUser(view: View, user: string): UserRecord {
  const bytes = view.get(userKey(user))
  if (bytes === undefined) throw fault('user_not_found', `no user ${user}`)
  return decodeRecord<UserRecord>(bytes)
}

/** The member of the record. Throws `not_possible` for anything else. */
function signMember(sign: Sign): Pick<UserRecord, 'sign'> {
  if (sign === 'both') return {}
  if (sign === 'hmac' || sign === 'path') return { sign }
  throw fault('not_possible', "a user's sign is hmac, path or both")
}

export function rightsOf(bits: number): Can[] {
  return (Object.keys(grant_bits) as Can[]).filter((name) => (bits & grant_bits[name]) !== 0)
}

function encryptSecret(encryptionKey: EncryptionKey, id: string, secret: Secret): string {
  return encryptionKey.encrypt(aboutSecret(id, secret.n), secret.plain)
}

const aboutSecret = (user: string, n: number): string => `secret ${user} ${n}`

function putSecret(tx: Tx, id: string, secret: Secret, sealed: string): void {
  const { n, until_ms } = secret
  const record: SecretRecord = until_ms === undefined ? { sealed } : { sealed, until_ms }
  tx.put(secretKey(id, n), encodeRecord(record))
}

function readAll(view: View, type: 'user' | 'secret'): Entry[] {
  return view.scan({ ...keysOfType(type), limit: Infinity })
}

function nextUser(view: View): string {
  let highest = first_user - 1n
  for (const { key } of readAll(view, 'user')) {
    const id = BigInt(userOfKey(key))
    if (id > highest) highest = id
  }
  return String(highest + 1n)
}

function listUsers(view: View, secretCount: (id: string) => number): UserInfo[] {
  return readAll(view, 'user').map(({ key, value }) => {
    const id = userOfKey(key)
    const { name, create_ms, sign = 'both' } = decodeRecord<UserRecord>(value)
    const grants = view
      .scan({ ...grantsOf(id), limit: Infinity })
      .map((grant) => ({ conv_id: grantOfKey(grant.key).conv, can: rightsOf(grant.value[0] ?? 0) }))
    return { id, name, create_time_ms: create_ms, secrets: secretCount(id), sign, grants }
  })
}
