/**
 * The key that encrypts the secrets of users: from the key file, or as given. It is in one of three
 * states:
 *
 * - not made yet: the store has no secret; `prepare` makes the key;
 * - usable: it decrypts the check value of the store;
 * - missing or wrong: `problem` says so in a sentence. Tasks and timers go on, and signed requests
 *   get `store_failed`.
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
import { makeKeyFile, readKeyFile, removeKeyFile, replaceKeyFile } from './encryption-key-file.ts'

export interface EncryptionKey {
  /** Why no secret can be decrypted; undefined while they can. */
  problem(): string | undefined
  /** Must be called before `encrypt`: makes the first key. Rejects with `key_missing`. */
  prepare(): Promise<void>
  /** `about` is bound to the ciphertext: only the same `about` decrypts it. */
  encrypt(about: string, plain: string): string
  decrypt(about: string, sealed: string): string | undefined
  /** A check value for the store, by which a later key is recognised as right or wrong. */
  check(): string
  /** A new key to encrypt everything with; `commit` puts it in place of the old one. */
  rekey(given: string | undefined): Promise<NextKey>
}

export interface NextKey {
  encrypt(about: string, plain: string): string
  check(): string
  /** Called once everything is stored under the new key. */
  commit(): Promise<void>
}

export interface EncryptionKeyOptions {
  /** Undefined for a store in memory, whose key is never stored. */
  readonly key_path: string | undefined
  /** The key as text, instead of a file. */
  readonly given_key: string | undefined
  /** The store's check value; undefined while it has no secret. */
  readonly check: string | undefined
  readonly chance: Chance
}

const check_about = 'check'
const check_plain = 'conveyor'

export async function openEncryptionKey(options: EncryptionKeyOptions): Promise<EncryptionKey> {
  const { key_path, chance } = options
  let key: Buffer | undefined
  let problem: string | undefined
  let given = options.given_key
  const fits = (one: Buffer | undefined): one is Buffer =>
    one !== undefined &&
    (options.check === undefined || decrypt(one, check_about, options.check) === check_plain)

  if (given !== undefined) {
    const read = parseKey(given)
    if (fits(read)) key = read
    else problem = 'CONVEYOR_KEY is not the key (32 bytes in hex or base64) that sealed the secrets'
  } else if (options.check !== undefined) {
    if (key_path === undefined) throw new Error('a store in memory cannot hold old secrets')
    key = await findKey(key_path, fits)
    if (key === undefined) {
      const text = await readKeyFile(key_path)
      const state = text === undefined ? 'missing' : 'not the right one'
      problem = `the key file ${key_path} is ${state}; put it back`
    }
  }

  const encrypterOf = (one: Buffer) => (about: string, plain: string) =>
    encrypt(one, about, plain, chance.bytes(nonce_bytes))
  const requireKey = (): Buffer => {
    if (key === undefined) throw fault('key_missing', problem)
    return key
  }

  return {
    problem: () => problem,
    async prepare() {
      if (problem !== undefined) throw fault('key_missing', problem)
      key ??=
        key_path === undefined
          ? chance.bytes(encryption_key_bytes)
          : await firstKey(key_path, chance)
    },
    encrypt: (about, plain) => encrypterOf(requireKey())(about, plain),
    decrypt: (about, sealed) => decrypt(requireKey(), about, sealed),
    check: () => encrypterOf(requireKey())(check_about, check_plain),
    async rekey(next_given) {
      const present = requireKey()
      if (given !== undefined && next_given === undefined) {
        throw fault('not_possible', 'the key comes from CONVEYOR_KEY; give the new one as well')
      }
      const next =
        next_given === undefined ? chance.bytes(encryption_key_bytes) : parseKey(next_given)
      if (next === undefined) throw fault('not_possible', 'a key is 32 bytes in hex or base64')
      const in_file = next_given === undefined && key_path !== undefined
      if (in_file) {
        // The key of an earlier rekey that could not be put in place must not be lost.
        const there = parseKey((await readKeyFile(key_path)) ?? '')
        if (there?.equals(present) === false) await replaceKeyFile(nextPath(key_path), key_path)
        await removeKeyFile(nextPath(key_path))
        await makeKeyFile(nextPath(key_path), next)
      }
      return {
        encrypt: encrypterOf(next),
        check: () => encrypterOf(next)(check_about, check_plain),
        async commit() {
          // The store is under the new key already, even if its file cannot be put in place.
          key = next
          given = next_given
          if (in_file) await replaceKeyFile(nextPath(key_path), key_path)
        },
      }
    },
  }
}

const nextPath = (key_path: string): string => `${key_path}.new`

/** The key that fits. A crash during a rekey leaves it under the second name. */
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

/** A key file beside a store without secrets was left by a crash, and is used. */
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
