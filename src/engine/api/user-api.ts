/** Public types of the servers' callers: users with their secrets, and client certificates. */
import type { SignatureKind } from '../../core/model.ts'
import type { Can } from './process-api.ts'

export interface UserInfo {
  readonly id: string
  readonly name: string
  readonly create_time_ms: number
  /** Valid secrets: 2 during a rotation's grace time. */
  readonly secrets: number
  readonly sign: Sign
  /** Absent without access to the operator's page. */
  readonly console?: ConsoleRight
  /** May use and change every process through the API; absent for no. */
  readonly is_administrator?: true
  readonly grants: readonly { readonly conv_id: string; readonly can: readonly Can[] }[]
}

/** On the operator's page; each right includes those before it. */
export const console_rights = ['look', 'operate', 'administer'] as const
export type ConsoleRight = (typeof console_rights)[number]

/** The signatures that a user may use: one, several, or `both` for `path` and `hmac`. */
export type Sign = SignatureKind | readonly SignatureKind[] | 'both'

export interface NewSecret {
  readonly id: string
  /** Returned only here. */
  readonly secret: string
}

export interface Rekeyed {
  readonly key_id: string
  /** Undefined if the new key was given. */
  readonly key_path?: string
  /** Undefined for a lost key. */
  readonly old_key_id?: string
  /** Undefined if the old key was given. */
  readonly old_key_path?: string
  /** At a cluster's owner: each of its nodes needs the new key. */
  readonly for_all_nodes?: true
}

export interface Binding {
  readonly name: string
  /** A user id, `all`, or null for a refusal. */
  readonly acts_as: string | null
}

export interface Users {
  /**
   * Adds a user of the signed HTTP API, with the processes that `processes.share` gives. The
   * default id is above the highest so far, from 13000 on; `sign` defaults to `both`. Rejects with
   * `user_exists` or `key_missing`.
   */
  add(options?: {
    readonly id?: string | number
    readonly name?: string
    readonly sign?: Sign
    readonly administer?: boolean
  }): Promise<NewSecret>
  list(): Promise<UserInfo[]>
  /** Makes a new secret; old ones stay valid for `grace_ms`, default 0. Rejects: `key_missing`. */
  rotate(id: string | number, options?: { readonly grace_ms?: number }): Promise<NewSecret>
  /** Sets the allowed signatures, from the next request on. */
  sign(id: string | number, sign: Sign): Promise<void>
  /** Grants or, with undefined, removes sign-in to the operator's page with a secret. */
  console(id: string | number, right: ConsoleRight | undefined): Promise<void>
  /** Gives or takes the right to use and change every process, from the next request on. */
  administer(id: string | number, may: boolean): Promise<void>
  remove(id: string | number): Promise<void>
  /**
   * Encrypts all secrets with the key of a new key file, or with `secret_key`. Older backups need
   * the old key file, which is kept at `old_key_path`. Rejects with `key_missing` or
   * `not_possible`.
   *
   * `forget_secrets` is for a lost key, and refused otherwise: all secrets are removed; `secrets`
   * counts them. Users keep their grants and get a secret by `rotate`; webhooks and callbacks get
   * new addresses.
   */
  rekey(options?: {
    readonly secret_key?: string
    readonly forget_secrets?: boolean
  }): Promise<Rekeyed & { readonly secrets: number }>
  /** A certificate name acts as a user. */
  bind(id: string | number, name: string): Promise<void>
  /** A certificate name may use every process. */
  bindAll(name: string): Promise<void>
  /** Refuses a name, bound or not: the deny list. */
  unbind(name: string): Promise<void>
  bindings(): readonly Binding[]
}

/** For servers only: an embedder who could read secrets might print them. */
export interface ServedUsers extends Users {
  /**
   * The secrets to compare with a credential: a user's, if it may sign this way, and for any other
   * user equally many stand-ins. Throws `store_failed` with a sentence that names a missing or
   * wrong key file.
   */
  secrets(id: string, kind?: SignatureKind): readonly string[]
  consoleRight(id: string): ConsoleRight | undefined
}
