/** The users of the servers: their rights, allowed signatures and client certificates. */
import {
  draftNodesOf,
  draftOfKey,
  grantKey,
  grantOfKey,
  grantsOf,
  keysOfType,
  secretsOf,
  userKey,
  userOfKey,
} from '../../codec/keys.ts'
import { decodeRecord, encodeRecord, grant_bits, type UserRecord } from '../../codec/records.ts'
import { defined } from '../../core/defined.ts'
import { fault } from '../../core/faults.ts'
import { type Caller, type SignatureKind, signature_kinds } from '../../core/model.ts'
import type { Entry, View } from '../../store/store.ts'
import type { Can } from '../api/process-api.ts'
import {
  type ConsoleRight,
  console_rights,
  type ServedUsers,
  type Sign,
  type UserInfo,
} from '../api/user-api.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn, removeAll } from '../transactions/scans.ts'
import type { CertificateBindings } from './certificate-bindings.ts'
import type { Secrets } from './secrets.ts'
import {
  type SecretLists,
  type SecretsToCompare,
  secretsIn,
  secretsOfThose,
} from './secrets-to-compare.ts'

const first_user = 13_000n

export async function openUsers(
  { store, clock }: Parts,
  secrets: Secrets,
  bindings: CertificateBindings,
): Promise<ServedUsers> {
  const { inTurn } = secrets

  /** Users without an entry may use `path` and `hmac`. */
  const only = new Map<string, readonly SignatureKind[]>()
  /**
   * Indexed by signature: reading `only` at each request would reveal by timing who has an entry.
   */
  let signers: Signers = { of: undefined }
  const setOnly = (id: string, sign: Sign | undefined): void => {
    signers = { of: undefined }
    if (sign === undefined || sign === 'both') only.delete(id)
    else only.set(id, kindsOf(sign))
  }
  const on_page = new Map<string, ConsoleRight>()
  const setRight = (id: string, right: ConsoleRight | undefined): void => {
    if (right === undefined) on_page.delete(id)
    else on_page.set(id, right)
  }
  for (const { key, value } of await store.view(allUsers)) {
    const { sign, console } = decodeRecord<UserRecord>(value)
    setOnly(userOfKey(key), sign)
    setRight(userOfKey(key), console)
  }

  function change(id: string, changed: (record: UserRecord) => UserRecord): Promise<void> {
    return store.update((tx) => tx.put(userKey(id), encodeRecord(changed(requireUser(tx, id)))))
  }

  return {
    add: ({ id: wanted, name = '', sign = 'both', administer = false } = {}) =>
      inTurn(async () => {
        const rights = { ...signMember(sign), ...(administer ? is_administrator : {}) }
        const record: UserRecord = { name, create_ms: clock.now_ms(), ...rights }
        const { owner: id, secret } = await secrets.add((tx) => {
          const id = wanted === undefined ? nextUser(tx) : userId(wanted)
          if (tx.get(userKey(id)) !== undefined) throw fault('user_exists', `user ${id} exists`)
          tx.put(userKey(id), encodeRecord(record))
          return id
        })
        setOnly(id, sign)
        return { id, secret }
      }),
    sign: (wanted, sign) =>
      inTurn(async () => {
        const id = userId(wanted)
        const allowed = signMember(sign)
        await change(id, ({ sign: _, ...kept }) => ({ ...kept, ...allowed }))
        setOnly(id, sign)
      }),
    console: (wanted, right) =>
      inTurn(async () => {
        const id = userId(wanted)
        if (right !== undefined && !console_rights.includes(right)) {
          throw fault('not_possible', `a right for the page is ${console_rights.join(', ')}`)
        }
        await change(id, ({ console: _, ...kept }) => ({ ...kept, ...defined({ console: right }) }))
        setRight(id, right)
      }),
    administer: (wanted, may) =>
      change(userId(wanted), ({ is_administrator: _, ...kept }) => ({
        ...kept,
        ...(may ? is_administrator : {}),
      })),
    list: () => store.view((view) => listUsers(view, (id) => secrets.known(id).length)),
    rotate: (wanted, { grace_ms = 0 } = {}) =>
      inTurn(async () => {
        const id = userId(wanted)
        const { secret } = await secrets.rotate(id, grace_ms, (tx) => void requireUser(tx, id))
        return { id, secret }
      }),
    remove: (wanted) =>
      inTurn(async () => {
        const id = userId(wanted)
        const names = await store.update((tx) => {
          requireUser(tx, id)
          tx.del(userKey(id))
          removeAll(tx, secretsOf(id))
          removeAll(tx, grantsOf(id))
          for (const { key } of allIn(tx, keysOfType('draft'))) {
            const { conv, user } = draftOfKey(key)
            if (user !== id) continue
            tx.del(key)
            removeAll(tx, draftNodesOf(conv, user))
          }
          return bindings.refuseAllOf(tx, id)
        })
        secrets.forget(id)
        setOnly(id, 'both')
        on_page.delete(id)
        bindings.refused(names)
      }),
    rekey: ({ secret_key, forget_secrets = false } = {}) =>
      inTurn(() => secrets.rekey(secret_key, forget_secrets)),
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
    secrets(id, kind) {
      const made = secrets.toCompare()
      if (made !== signers.of) signers = signersOf(made, only)
      return secretsIn((kind === undefined ? undefined : signers[kind]) ?? made.of, id)
    },
    consoleRight: (id) => on_page.get(id),
  }
}

const is_administrator = { is_administrator: true } as const

interface Signers extends Readonly<Partial<Record<SignatureKind, SecretLists>>> {
  readonly of: SecretsToCompare | undefined
}

function signersOf(
  made: SecretsToCompare,
  only: ReadonlyMap<string, readonly SignatureKind[]>,
): Signers {
  const maySign = (kind: SignatureKind): SecretLists =>
    secretsOfThose(made.of, (id) => (only.get(id) ?? default_kinds).includes(kind))
  return { of: made, ...Object.fromEntries(signature_kinds.map((kind) => [kind, maySign(kind)])) }
}

const default_kinds: readonly SignatureKind[] = ['path', 'hmac']

function kindsOf(sign: SignatureKind | readonly SignatureKind[]): readonly SignatureKind[] {
  return typeof sign === 'string' ? [sign] : sign
}

/** Throws `not_possible` unless it is an integer of 1 to 16 digits. */
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

/** Throws `not_possible` for an invalid value. */
function signMember(sign: Sign): Pick<UserRecord, 'sign'> {
  if (sign === 'both') return {}
  const kinds = kindsOf(sign)
  if (kinds.length > 0 && kinds.every((kind) => signature_kinds.includes(kind))) return { sign }
  throw fault('not_possible', `a user's sign is both, or of ${signature_kinds.join(', ')}`)
}

export function rightsOf(bits: number): Can[] {
  return (Object.keys(grant_bits) as Can[]).filter((name) => (bits & grant_bits[name]) !== 0)
}

function allUsers(view: View): Entry[] {
  return allIn(view, keysOfType('user'))
}

function nextUser(view: View): string {
  let highest = first_user - 1n
  for (const { key } of allUsers(view)) {
    const id = BigInt(userOfKey(key))
    if (id > highest) highest = id
  }
  return String(highest + 1n)
}

function listUsers(view: View, secretCount: (id: string) => number): UserInfo[] {
  return allUsers(view).map(({ key, value }) => {
    const id = userOfKey(key)
    const {
      name,
      create_ms,
      sign = 'both',
      console,
      is_administrator,
    } = decodeRecord<UserRecord>(value)
    const grants = allIn(view, grantsOf(id)).map((grant) => {
      return { conv_id: grantOfKey(grant.key).conv, can: rightsOf(grant.value[0] ?? 0) }
    })
    const secrets = secretCount(id)
    const rights = defined({ console, is_administrator })
    return { id, name, create_time_ms: create_ms, secrets, sign, ...rights, grants }
  })
}

/** Whether the caller may administer; a certificate that acts as no user may not. */
export function mayAdminister(view: View, { user }: Caller): boolean {
  if (user === undefined) return false
  const bytes = view.get(userKey(user))
  return bytes !== undefined && decodeRecord<UserRecord>(bytes).is_administrator === true
}

/** Whether the caller may see a process's tasks; the process need not exist. */
export function maySee(view: View, { user }: Caller, conv_id: string): boolean {
  if (user === undefined) return true
  return ((view.get(grantKey(user, conv_id))?.[0] ?? 0) & grant_bits.show) !== 0
}
