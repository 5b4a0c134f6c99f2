/**
 * The key that encrypts the secrets of users, from the key file or an option. Its states:
 *
 * - not made yet: the store has no secret; `prepare` makes the key;
 * - usable: it decrypts the store's check value and stays in memory whatever becomes of its file;
 *   `warning` says what the next start would find;
 * - missing or wrong: `problem` says so. Tasks continue, signed requests get `store_failed`, and
 *   `look` accepts a restored key file.
 *
 * Both sentences name the file, so they are for the operator. Each change emits one event.
 */
import {
  decrypt,
  encrypt,
  encryption_key_bytes,
  keyId,
  nonce_bytes,
  parseKey,
} from '../../codec/encryption.ts'
import type { Chance } from '../../core/clock.ts'
import { defined } from '../../core/defined.ts'
import type { Emit } from '../../core/events.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Rekeyed } from '../api/user-api.ts'
import {
  type KeyFile,
  type KeyTrouble,
  makeKeyFile,
  oldKeyPath,
  readKeyFile,
  removeKeyFile,
  replaceKeyFile,
} from './encryption-key-file.ts'

export interface EncryptionKey {
  /** Why no secret can be decrypted, if so. */
  problem(): string | undefined
  /** What is wrong with the key file while secrets can still be decrypted. */
  warning(): string | undefined
  id(): string | undefined
  look(): void
  /** Makes the first key, before `encrypt`. Rejects with `key_missing`. */
  prepare(): Promise<void>
  /** Only the same `about` decrypts the ciphertext. */
  encrypt(about: string, plain: string): string
  decrypt(about: string, sealed: string): string | undefined
  /** A check value for the store that identifies the key. */
  check(): string
  /** A new key; `commit` replaces the old one, which is not used if `is_lost`. */
  rekey(given: string | undefined, is_lost: boolean): Promise<NextKey>
}

export interface NextKey {
  encrypt(about: string, plain: string): string
  check(): string
  /** Call once everything is stored under the new key. */
  commit(): Promise<Rekeyed>
}

export interface KeySource {
  /** Undefined for a store in memory, whose key is never stored. */
  readonly key_path: string | undefined
  readonly given_key: string | undefined
}

interface EncryptionKeyOptions extends KeySource {
  /** The store's check value; undefined without secrets. */
  readonly check: string | undefined
  readonly chance: Chance
  readonly emit: Emit
}

const check_about = 'check'
const check_plain = 'conveyor'

type State = KeyTrouble | 'another'

// biome-ignore format: a table
const says: Record<State, (file: KeyFile) => string> = {
  missing:    () => 'is missing; put it back',
  unreadable: ({ cause }) => `cannot be read (${cause}); give this user the right to read it`,
  no_key:     () => 'is no key (32 bytes in hex or base64); put the right one back',
  another:    () => 'is the key of another file; put the right one back',
}

/** Whether a key decrypts the check value of a store. */
export function keyFits(given: string | Buffer | undefined, check: string): boolean {
  const key = typeof given === 'string' ? parseKey(given) : given
  return key !== undefined && decrypt(key, check_about, check) === check_plain
}

/** Why a node cannot read the secrets of a state with its key. */
export function nodeKeyFault(
  check: string | undefined,
  { key_path, given_key }: KeySource,
): Fault | undefined {
  const fits = (one: string | Buffer | undefined): boolean =>
    check === undefined || keyFits(one, check)
  const key = given_key ?? (key_path === undefined ? undefined : findKey(key_path, fits).key)
  if (fits(key)) return undefined
  const which = given_key === undefined ? `the key file ${key_path}` : 'CONVEYOR_KEY'
  const says = key === undefined ? 'is missing' : 'is not the key of the other nodes'
  return fault('key_missing', `${which} ${says}: give each node the same key of the secrets`)
}

export async function openEncryptionKey(options: EncryptionKeyOptions): Promise<EncryptionKey> {
  const { key_path, chance, emit } = options
  let key: Buffer | undefined
  let problem: string | undefined
  let warning: string | undefined
  let emitted: State | 'open' | undefined
  let given = options.given_key
  let is_replacing = false
  const fits = (one: Buffer | undefined): one is Buffer => {
    if (one === undefined) return false
    if (key !== undefined) return one.equals(key)
    return options.check === undefined || keyFits(one, options.check)
  }

  /** Emits each state once. */
  function enter(state: State | 'open' | undefined, path: string): void {
    if (state === emitted) return
    const was_wrong = emitted !== undefined && emitted !== 'open'
    emitted = state
    if (state === 'open') emit('key_open', { path })
    else if (state !== undefined) emit('key_missing', { path, state, works: key !== undefined })
    if (was_wrong && (state === undefined || state === 'open')) emit('key_back', { path })
  }

  function look(): void {
    const is_file = given === undefined && key_path !== undefined
    if (!is_file || is_replacing || (key === undefined && options.check === undefined)) return
    const file = findKey(key_path, fits)
    const found = fits(file.key)
    if (found) key ??= file.key
    const state = found ? undefined : (file.trouble ?? 'another')
    enter(state ?? (file.is_open ? 'open' : undefined), key_path)
    const text = state && `the key file ${key_path} ${says[state](file)}`
    problem = key === undefined ? text : undefined
    const open = file.is_open ? `other users may read ${key_path}; run chmod 600 on it` : undefined
    warning =
      key === undefined
        ? undefined
        : (text && `${text}: this process has the key in memory, the next start does not`) || open
  }

  if (given !== undefined) {
    const read = parseKey(given)
    if (fits(read)) key = read
    else {
      problem = `CONVEYOR_KEY ${says[read === undefined ? 'no_key' : 'another']({ ...no_file })}`
      enter(read === undefined ? 'no_key' : 'another', 'CONVEYOR_KEY')
    }
  } else if (options.check !== undefined) {
    if (key_path === undefined) throw new Error('a store in memory cannot hold old secrets')
    look()
    // A crash during a rekey left the key under the second name.
    const is_next = key !== undefined && readKeyFile(nextPath(key_path)).key?.equals(key) === true
    if (is_next && readKeyFile(key_path).key?.equals(key as Buffer) !== true) {
      await replaceKeyFile(nextPath(key_path), key_path)
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
    warning: () => warning,
    id: () => key && keyId(key),
    look,
    async prepare() {
      look()
      if (problem !== undefined) throw fault('key_missing', problem)
      key ??=
        key_path === undefined
          ? chance.bytes(encryption_key_bytes)
          : await firstKey(key_path, chance)
    },
    encrypt: (about, plain) => encrypterOf(requireKey())(about, plain),
    decrypt: (about, sealed) => decrypt(requireKey(), about, sealed),
    check: () => encrypterOf(requireKey())(check_about, check_plain),
    async rekey(next_given, is_lost) {
      if (is_lost && problem === undefined) {
        throw fault('not_possible', 'nothing is lost: the secrets can be read')
      }
      const present = is_lost ? undefined : requireKey()
      if (given !== undefined && next_given === undefined) {
        throw fault('not_possible', 'the key comes from CONVEYOR_KEY; give the new one as well')
      }
      const next =
        next_given === undefined ? chance.bytes(encryption_key_bytes) : parseKey(next_given)
      if (next === undefined) throw fault('not_possible', 'a key is 32 bytes in hex or base64')
      const from_file = given === undefined ? key_path : undefined
      const to_file = next_given === undefined ? key_path : undefined
      if (to_file !== undefined) {
        const next_path = nextPath(to_file)
        // The store keeps the present key until the commit. An earlier rekey's key may not be in
        // place yet, and the key file may be gone.
        if (present === undefined) refuseNoKey(to_file)
        else if (!fits(readKeyFile(to_file).key)) {
          if (!fits(readKeyFile(next_path).key)) await makeAgain(next_path, present)
          await replaceKeyFile(next_path, to_file)
        }
        await makeAgain(next_path, next)
      }
      return {
        encrypt: encrypterOf(next),
        check: () => encrypterOf(next)(check_about, check_plain),
        async commit() {
          // The store already uses the new key, even if its file cannot be put in place.
          key = next
          given = next_given
          is_replacing = true
          try {
            if (to_file !== undefined) await replaceKeyFile(nextPath(to_file), to_file)
          } finally {
            is_replacing = false
          }
          problem = undefined
          warning = undefined
          if (given === undefined) look()
          else enter(undefined, 'CONVEYOR_KEY')
          const made = { key_id: keyId(next), ...defined({ key_path: to_file }) }
          if (present === undefined) return made
          const kept_path = to_file === undefined ? from_file : oldKeyPath(to_file, present)
          const old_key_path = from_file === undefined ? undefined : kept_path
          return { ...made, old_key_id: keyId(present), ...defined({ old_key_path }) }
        },
      }
    },
  }
}

const no_file: KeyFile = { key: undefined, is_open: false }
const nextPath = (key_path: string): string => `${key_path}.new`

async function makeAgain(path: string, key: Buffer): Promise<void> {
  await removeKeyFile(path)
  await makeKeyFile(path, key)
}

/** The key file with a fitting key: the second one after a crash during a rekey. */
function findKey(key_path: string, fits: (key: Buffer | undefined) => boolean): KeyFile {
  const file = readKeyFile(key_path)
  if (fits(file.key)) return file
  const next = readKeyFile(nextPath(key_path))
  return fits(next.key) ? next : file
}

/** A key file beside a store without secrets was left by a crash, and is used. */
async function firstKey(key_path: string, chance: Chance): Promise<Buffer> {
  const key = refuseNoKey(key_path)
  if (key !== undefined) return key
  const made = chance.bytes(encryption_key_bytes)
  await makeAgain(nextPath(key_path), made)
  await replaceKeyFile(nextPath(key_path), key_path)
  return made
}

/** A file without a valid key stays: it may be part of one. */
function refuseNoKey(key_path: string): Buffer | undefined {
  const { key, trouble } = readKeyFile(key_path)
  if (key !== undefined || trouble === 'missing') return key
  throw fault('key_missing', `${key_path} is no key file; move it away and try again`)
}
