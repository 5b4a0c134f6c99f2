/**
 * The part of the public interface that says who may call the servers, as types: users who sign,
 * with their secrets, and client certificates.
 */
import type { SignatureKind } from '../../core/model.ts'
import type { Can } from './process-api.ts'

export interface UserInfo {
  readonly id: string
  readonly name: string
  readonly create_time_ms: number
  /** The number of valid secrets: 2 during the grace time of a rotation. */
  readonly secrets: number
  readonly sign: Sign
  /** What the user may on the operator's page; absent for nothing. */
  readonly console?: ConsoleRight
  readonly grants: readonly { readonly conv_id: string; readonly can: readonly Can[] }[]
}

/** What a user may do on the operator's page: each right includes those before it. */
export const console_rights = ['look', 'operate', 'administer'] as const
export type ConsoleRight = (typeof console_rights)[number]

/** The signatures that a user may use. */
export type Sign = SignatureKind | 'both'

export interface NewSecret {
  readonly id: string
  /** Returned only here; it cannot be read again. */
  readonly secret: string
}

/** What older backups need, and what is needed from now on. */
export interface Rekeyed {
  readonly key_id: string
  /** Undefined where the new key was given. */
  readonly key_path?: string
  /** Undefined where that is lost. */
  readonly old_key_id?: string
  /** Undefined where the old key was given. */
  readonly old_key_path?: string
  /** At the owner of a cluster: whether each of its nodes needs the new key, which it does. */
  readonly for_all_nodes?: true
}

export interface Binding {
  readonly name: string
  /** The id of a user, `all`, or null for a refusal. */
  readonly acts_as: string | null
}

export interface Users {
  /**
   * A user of the signed HTTP API, who signs with the returned id and secret, and may use what
   * `processes.share` gives. Without an id the user gets one above the highest so far, from 13000
   * on. `sign` defaults to `both`. Rejects with `user_exists` or `key_missing`.
   */
  add(options?: {
    readonly id?: string | number
    readonly name?: string
    readonly sign?: Sign
  }): Promise<NewSecret>
  list(): Promise<UserInfo[]>
  /**
   * Makes a new secret; the old ones stay valid for `grace_ms`, default 0. Rejects with
   * `key_missing`.
   */
  rotate(id: string | number, options?: { readonly grace_ms?: number }): Promise<NewSecret>
  /** Says which signatures a user may use, from the next request on. */
  sign(id: string | number, sign: Sign): Promise<void>
  /** Lets a user sign in to the operator's page with a secret, or with undefined no more. */
  console(id: string | number, right: ConsoleRight | undefined): Promise<void>
  remove(id: string | number): Promise<void>
  /**
   * Encrypts all secrets with the key of a new key file, or with `secret_key`. The old key file
   * stays under another name, `old_key_path`: older backups need it. Rejects with `key_missing` or
   * `not_possible`.
   *
   * `forget_secrets` is for a key that is lost for good, and refused while there is one: all
   * secrets are removed, and `secrets` is how many. Users keep their grants and get a new one by
   * `rotate`; webhooks and callbacks have new addresses.
   */
  rekey(options?: {
    readonly secret_key?: string
    readonly forget_secrets?: boolean
  }): Promise<Rekeyed & { readonly secrets: number }>
  /** Lets a certificate name act as a user. */
  bind(id: string | number, name: string): Promise<void>
  /** Lets a certificate name use every process. */
  bindAll(name: string): Promise<void>
  /** Refuses a name, whether it was bound or not: the deny list. */
  unbind(name: string): Promise<void>
  bindings(): readonly Binding[]
}

/** What servers see beside it. An embedder who could read the secrets might print them. */
export interface ServedUsers extends Users {
  /**
   * The secrets to compare with what a caller sends: those of a user who may sign this way, and as
   * many for any other, filled up with one that no caller knows. Throws `store_failed` with a
   * sentence that names the key file where the key is missing or wrong.
   */
  secrets(id: string, kind?: SignatureKind): readonly string[]
  /** What the user may on the operator's page. */
  consoleRight(id: string): ConsoleRight | undefined
}
