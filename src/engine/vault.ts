/**
 * The key of the secrets (wire 3, `user`): where it comes from, and what it seals.
 *
 * Three states. `empty`: the store has no secret yet, and the first `seal` makes the key. `open`:
 * the key fits the store's check value. `shut`: the store has secrets and the key is missing or
 * wrong; tasks and timers go on, the signed door answers `store_failed` with the sentence of `why`.
 */
import {
  decrypt,
  encrypt,
  encryption_key_bytes,
  nonce_bytes,
  parseKey,
} from '../codec/encryption.ts'
import type { Chance } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import { makeKeyFile, readKeyFile, removeKeyFile, replaceKeyFile } from './secret-key-file.ts'

export interface Vault {
  /** Why no secret can be read; undefined while they can. */
  why(): string | undefined
  /**
   * Gets the key ready for `seal`, made and on disk if it is the first. Rejects with `key_missing`.
   */
  prepare(): Promise<void>
  seal(about: string, plain: string): string
  unseal(about: string, sealed: string): string | undefined
  /** What to store so that the key can be told from another. */
  check(): string
  /** A fresh key to seal everything with; `commit` puts it in the old one's place. */
  rekey(given: string | undefined): Promise<NextKey>
}

export interface NextKey {
  seal(about: string, plain: string): string
  check(): string
  /** Once all that was sealed anew is on disk. */
  commit(): Promise<void>
}

export interface VaultOptions {
  /** Undefined for a store in memory: its key lives as long as it does. */
  readonly key_path: string | undefined
  /** The key as text, instead of a file. */
  readonly given_key: string | undefined
  /** The store's check value; undefined while it has no secret. */
  readonly check: string | undefined
  readonly chance: Chance
}

const check_about = 'check'
const check_plain = 'conveyor'

export async function openVault(options: VaultOptions): Promise<Vault> {
  const { key_path, chance } = options
  let key: Buffer | undefined
  let why: string | undefined
  let given = options.given_key
  const fits = (one: Buffer | undefined): one is Buffer =>
    one !== undefined &&
    (options.check === undefined || decrypt(one, check_about, options.check) === check_plain)

  if (given !== undefined) {
    const read = parseKey(given)
    if (fits(read)) key = read
    else why = 'CONVEYOR_KEY is not the key (32 bytes in hex or base64) that sealed the secrets'
  } else if (options.check !== undefined) {
    if (key_path === undefined) throw new Error('a store in memory cannot hold old secrets')
    key = await findKey(key_path, fits)
    if (key === undefined) {
      const text = await readKeyFile(key_path)
      const state = text === undefined ? 'missing' : 'not the right one'
      why = `the key file ${key_path} is ${state}; put it back`
    }
  }

  const sealer = (one: Buffer) => (about: string, plain: string) =>
    encrypt(one, about, plain, chance.bytes(nonce_bytes))
  const ready = (): Buffer => {
    if (key === undefined) throw fault('key_missing', why)
    return key
  }

  return {
    why: () => why,
    async prepare() {
      if (why !== undefined) throw fault('key_missing', why)
      key ??=
        key_path === undefined
          ? chance.bytes(encryption_key_bytes)
          : await firstKey(key_path, chance)
    },
    seal: (about, plain) => sealer(ready())(about, plain),
    unseal: (about, sealed) => decrypt(ready(), about, sealed),
    check: () => sealer(ready())(check_about, check_plain),
    async rekey(next_given) {
      const present = ready()
      if (given !== undefined && next_given === undefined) {
        throw fault('not_possible', 'the key comes from CONVEYOR_KEY; give the new one as well')
      }
      const next =
        next_given === undefined ? chance.bytes(encryption_key_bytes) : parseKey(next_given)
      if (next === undefined) throw fault('not_possible', 'a key is 32 bytes in hex or base64')
      const in_file = next_given === undefined && key_path !== undefined
      if (in_file) {
        // Where an earlier rekey could not put its key in place, that key must not be removed now.
        const there = parseKey((await readKeyFile(key_path)) ?? '')
        if (there?.equals(present) === false) await replaceKeyFile(nextPath(key_path), key_path)
        await removeKeyFile(nextPath(key_path))
        await makeKeyFile(nextPath(key_path), next)
      }
      return {
        seal: sealer(next),
        check: () => sealer(next)(check_about, check_plain),
        async commit() {
          // The store is under the new key already, whether its file can be put in place or not.
          key = next
          given = next_given
          if (in_file) await replaceKeyFile(nextPath(key_path), key_path)
        },
      }
    },
  }
}

const nextPath = (key_path: string): string => `${key_path}.new`

/** The key file that fits. A crash in a rekey leaves the fitting key under the second name. */
async function findKey(
  key_path: string,
  fits: (key: Buffer | undefined) => key is Buffer,
): Promise<Buffer | undefined> {
  const key = parseKey((await readKeyFile(key_path)) ?? '')
  if (fits(key)) return key
  const next = parseKey((await readKeyFile(nextPath(key_path))) ?? '')
  if (!fits(next)) return undefined
  await replaceKeyFile(nextPath(key_path), key_path)
  return next
}

/** A key file that is there although the store has no secret yet is one whose first use crashed. */
async function firstKey(key_path: string, chance: Chance): Promise<Buffer> {
  const text = await readKeyFile(key_path)
  if (text === undefined) {
    const key = chance.bytes(encryption_key_bytes)
    await makeKeyFile(key_path, key)
    return key
  }
  const key = parseKey(text)
  if (key === undefined) {
    throw fault('key_missing', `${key_path} is no key file; move it away and try again`)
  }
  return key
}
