/**
 * The secrets of users and of addresses, decrypted into memory at the open or once the key is
 * there. A stored secret is encrypted and bound to its owner and number.
 */
import {
  address_secret,
  type Key,
  keysOfType,
  metaKey,
  secretKey,
  secretOfKey,
  secretsOf,
} from '../../codec/keys.ts'
import { decodeRecord, encodeRecord, type SecretRecord } from '../../codec/records.ts'
import { fault } from '../../core/faults.ts'
import type { Tx } from '../../store/store.ts'
import type { Rekeyed } from '../api/user-api.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn, removeAll } from '../transactions/scans.ts'
import { type KeySource, openEncryptionKey } from './encryption-key.ts'
import {
  holdsAt,
  type Secret,
  type SecretsToCompare,
  secretsToCompare,
  validAt,
} from './secrets-to-compare.ts'

export interface Secrets {
  /** Valid secrets; none for an unknown owner or without a usable key. */
  known(owner: string): readonly string[]
  /** As `known`. Throws `store_failed` naming the key file if that is wrong. */
  read(owner: string): readonly string[]
  /** Those to compare with a credential. Throws `store_failed` like `read`. */
  toCompare(): SecretsToCompare
  /**
   * Checks the key file, at most once a second. `problem`: why no secret can be read; `warning`:
   * why the next start will not read them.
   */
  keyState(): KeyState
  /** Serialises changes: the key must not change between encrypting and storing a secret. */
  inTurn<Made>(change: () => Promise<Made>): Promise<Made>
  /** Makes the only secret of the owner. Rejects with `key_missing`. */
  add(ownerIn: (tx: Tx) => string): Promise<OwnSecret>
  /** Adds a secret; old ones stay valid for `grace_ms`. Rejects with `key_missing`. */
  rotate(owner: string, grace_ms: number, check: (tx: Tx) => void): Promise<OwnSecret>
  /**
   * Encrypts the only secret of an owner, or none; `put` it in a transaction, and `keep` it once
   * that is committed, all in one turn. Rejects with `key_missing`.
   */
  give(owner: string, plain: string | undefined): Promise<GivenSecret>
  /** Call after the store has removed an owner's secrets. */
  forget(owner: string): void
  /**
   * Encrypts all with another key. `forgets`, for a lost key, removes all in the same commit and
   * renews the secret of addresses.
   */
  rekey(secret_key: string | undefined, forgets: boolean): Promise<Rekeyed & { secrets: number }>
}

export interface GivenSecret {
  put(tx: Tx): void
  keep(): void
}

export interface KeyState {
  readonly problem: string | undefined
  readonly warning: string | undefined
  readonly id: string | undefined
}

export interface OwnSecret {
  readonly owner: string
  readonly secret: string
}

const check_key = metaKey('key_check')
/** Identifies the key of a state; see `nodeKeyFault`. */
export function keyCheckIn(found: { get(key: Key): Buffer | undefined }): string | undefined {
  return found.get(check_key)?.toString('utf8')
}

const secret_bytes = 32
/** Intervals of key file checks: while it is missing or wrong, and while its key works. */
const looks_ms = { locked: 1_000, usable: 60_000 }
const outside = 'the secrets cannot be read now; the log of the server says why'

export async function openSecrets(
  { store, clock, chance, emit }: Parts,
  given: KeySource,
): Promise<Secrets> {
  const stored = await store.view((view) => ({
    check: view.get(check_key)?.toString('utf8'),
    secrets: allIn(view, keysOfType('secret')).map(({ key, value }) => ({
      ...secretOfKey(key),
      record: decodeRecord<SecretRecord>(value),
    })),
  }))
  const encryptionKey = await openEncryptionKey({ ...given, chance, emit, check: stored.check })
  const kept = new Map<string, Secret[]>()
  let looked_ms = clock.now_ms()
  let to_compare: SecretsToCompare | undefined
  let sealed = stored.secrets
  unseal()

  function unseal(): void {
    if (encryptionKey.problem() !== undefined) return
    for (const { user, n, record } of sealed) {
      const plain = encryptionKey.decrypt(aboutSecret(user, n), record.sealed)
      // A damaged secret is ignored; the others stay valid.
      if (plain === undefined) continue
      kept.set(user, [...(kept.get(user) ?? []), { n, plain, until_ms: record.until_ms }])
    }
    sealed = []
    to_compare = undefined
  }

  function look(every_ms: number): void {
    const now_ms = clock.now_ms()
    if (Math.abs(now_ms - looked_ms) < every_ms) return
    looked_ms = now_ms
    encryptionKey.look()
    if (sealed.length > 0) unseal()
  }

  function lookAgain(): void {
    look(encryptionKey.problem() === undefined ? looks_ms.usable : looks_ms.locked)
  }

  async function prepare(): Promise<void> {
    look(0)
    await encryptionKey.prepare()
  }

  function requireKey(): void {
    const why = encryptionKey.problem()
    if (why !== undefined) throw fault('store_failed', why, { outside })
  }

  const valid = (owner: string): Secret[] => validAt(kept.get(owner) ?? [], clock.now_ms())
  function known(owner: string): string[] {
    lookAgain()
    return valid(owner).map((one) => one.plain)
  }

  const newSecret = (): string => chance.bytes(secret_bytes).toString('base64url')
  let stand_in: string | undefined

  function fresh(n: number): Secret {
    const taken = new Set([...kept.values()].flat().map((one) => one.plain))
    for (;;) {
      const plain = newSecret()
      if (!taken.has(plain)) return { n, plain, until_ms: undefined }
    }
  }

  /** Replaces an owner's stored secrets, then those in memory. */
  async function put(secrets: Secret[], ownerIn: (tx: Tx) => string): Promise<string> {
    const check = encryptionKey.check()
    const owner = await store.update((tx) => {
      const owner = ownerIn(tx)
      write(tx, owner, secrets, check)
      return owner
    })
    keep(owner, secrets)
    return owner
  }

  function write(tx: Tx, owner: string, secrets: readonly Secret[], check: string): void {
    if (tx.get(check_key) === undefined) tx.put(check_key, Buffer.from(check))
    removeAll(tx, secretsOf(owner))
    for (const one of secrets) {
      putSecret(tx, owner, one, encryptionKey.encrypt(aboutSecret(owner, one.n), one.plain))
    }
  }

  function keep(owner: string, secrets: Secret[]): void {
    kept.set(owner, secrets)
    to_compare = undefined
  }

  return {
    known,
    read(owner) {
      const secrets = known(owner)
      requireKey()
      return secrets
    },
    toCompare() {
      lookAgain()
      requireKey()
      const now_ms = clock.now_ms()
      if (to_compare === undefined || !holdsAt(to_compare, now_ms)) {
        stand_in ??= newSecret()
        to_compare = secretsToCompare(kept, now_ms, stand_in)
      }
      return to_compare
    },
    keyState() {
      look(looks_ms.locked)
      const { problem, warning, id } = encryptionKey
      return { problem: problem(), warning: warning(), id: id() }
    },
    inTurn: newSerialQueue(),
    async add(ownerIn) {
      await prepare()
      const made = fresh(1)
      return { owner: await put([made], ownerIn), secret: made.plain }
    },
    async rotate(owner, grace_ms, check) {
      await prepare()
      const until_ms = clock.now_ms() + grace_ms
      const old = valid(owner)
        .filter(() => grace_ms > 0)
        .map((one) => ({ ...one, until_ms: Math.min(one.until_ms ?? until_ms, until_ms) }))
      const made = fresh(Math.max(0, ...(kept.get(owner) ?? []).map((one) => one.n)) + 1)
      await put([...old, made], (tx) => {
        check(tx)
        return owner
      })
      return { owner, secret: made.plain }
    },
    async give(owner, plain) {
      await prepare()
      const secrets = plain === undefined ? [] : [{ n: 1, plain, until_ms: undefined }]
      const check = encryptionKey.check()
      return {
        put: (tx) => write(tx, owner, secrets, check),
        keep: () => keep(owner, secrets),
      }
    },
    forget(owner) {
      kept.delete(owner)
      to_compare = undefined
      sealed = sealed.filter(({ user }) => user !== owner)
    },
    async rekey(secret_key, forgets) {
      if (forgets) look(0)
      else await prepare()
      const next = await encryptionKey.rekey(secret_key, forgets)
      const lost = forgets ? sealed : []
      if (lost.some(({ user }) => user === address_secret)) kept.set(address_secret, [fresh(1)])
      const all = [...kept].flatMap(([owner, secrets]) => secrets.map((one) => ({ owner, one })))
      const encrypted = all.map(({ owner, one }) => {
        return { owner, one, text: next.encrypt(aboutSecret(owner, one.n), one.plain) }
      })
      const check = next.check()
      await store.update((tx) => {
        tx.put(check_key, Buffer.from(check))
        for (const { user, n } of lost) tx.del(secretKey(user, n))
        for (const { owner, one, text } of encrypted) putSecret(tx, owner, one, text)
      })
      if (forgets) {
        sealed = []
        emit('secrets_forgotten', { secrets: lost.length })
      }
      const made = { secrets: forgets ? lost.length : all.length, ...(await next.commit()) }
      return store.commitLogError === undefined ? made : { ...made, for_all_nodes: true }
    },
  }
}

function newSerialQueue(): Secrets['inTurn'] {
  let last: Promise<unknown> = Promise.resolve()
  return (change) => {
    const done = last.then(change)
    last = done.catch(() => {})
    return done
  }
}

const aboutSecret = (owner: string, n: number): string => `secret ${owner} ${n}`

function putSecret(tx: Tx, owner: string, { n, until_ms }: Secret, sealed: string): void {
  const record: SecretRecord = until_ms === undefined ? { sealed } : { sealed, until_ms }
  tx.put(secretKey(owner, n), encodeRecord(record))
}
