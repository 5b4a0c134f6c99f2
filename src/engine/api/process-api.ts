/**
 * Public types for storing, importing and administering processes.
 */
import type { Status } from '../../core/model.ts'

export interface ProcessInfo {
  readonly conv_id: string
  readonly title: string
  /** A draft has no nodes and takes no tasks. */
  readonly status: 'active' | 'paused' | 'draft'
  readonly version: number
  /** SHA-256 of the canonical definition text, hex. */
  readonly hash: string
  /** Live tasks. */
  readonly tasks: number
}

export interface ProcessDetails extends ProcessInfo {
  /** The definition as JSON text. */
  readonly definition_text: string
  readonly nodes: readonly {
    readonly id: string
    readonly title: string
    readonly kind: 'logic' | 'start' | 'end' | 'escalation'
    /** Live tasks. */
    readonly tasks: number
    readonly by_status: Readonly<Record<Status, number>>
    readonly to: readonly string[]
    /** Its calls of processes are answered from a stub. */
    readonly is_stub?: true
    /** What tasks in it wait for: `callback`, `timer`, `call`. */
    readonly waits_for: readonly string[]
    /** The registered handler of the node. */
    readonly handler?: string
  }[]
  readonly shared_with: readonly { readonly user: string; readonly can: readonly Can[] }[]
}

export interface WebhookChange {
  /** `new` replaces an open address, `off` closes it. Default: it stays. */
  readonly address?: 'new' | 'off'
  /** Opens the webhook; requests need HTTP basic credentials of this user. */
  readonly user?: string | number
}

/** Addresses are URLs, or paths before an HTTP server listens. */
export interface WebhookInfo {
  readonly conv_id: string
  /** Null while closed. */
  readonly address: string | null
  /** Whether the definition asks for a login. */
  readonly has_login: boolean
  /** The user whose credentials a request needs. */
  readonly user: string | null
  readonly callbacks: readonly { readonly node_id: string; readonly address: string }[]
}

/** `edit` is the right to read and change the process itself; nobody has it by default. */
export type Can = 'create' | 'modify' | 'show' | 'edit'

export interface Processes {
  /**
   * Compiles and stores a definition: of `defineProcess`, or in the process format, as JSON text or
   * plain values. Call it at each start: an unchanged definition is left alone, a changed one
   * becomes the next version for all tasks. Rejects with `bad_definition`, whose `mistakes` have
   * their places, and with `tasks_in_node` if a dropped node has tasks and no `moves`.
   */
  put(definition: unknown, options?: PutOptions): Promise<PutResult>
  /**
   * Stores all definitions and aliases of an export, or none: one definition, an array, or a folder
   * with children, as JSON text or plain values. Rejects as `put`; mistakes name their definition.
   */
  putMany(definitions: unknown, options?: PutManyOptions): Promise<PutResult[]>
  /**
   * As `putMany` for several files, and stores their variables; mistakes name their file.
   * `readExport` of `conveyor-engine/files` reads files, folders and zip files from disk.
   */
  importFiles(files: readonly ExportFile[], options?: PutManyOptions): Promise<ImportResult>
  list(): Promise<ProcessInfo[]>
  /**
   * `version` shows the title, nodes and text of an earlier definition, with the present tasks.
   * Rejects with `not_possible` for an unknown version.
   */
  show(conv_id: string | number, version?: number): Promise<ProcessDetails>
  /** The last 1,000 versions, newest first. */
  versions(conv_id: string | number): Promise<number[]>
  /** Lets a user of the signed API use a process; `can` defaults to all but `edit`. */
  share(conv_id: string | number, user: string | number, can?: readonly Can[]): Promise<void>
  unshare(conv_id: string | number, user: string | number): Promise<void>
  /**
   * Until `resume`, creates and modifies are refused with `conveyor_is_not_active`, and timers,
   * jobs and handlers wait.
   */
  pause(conv_id: string | number): Promise<void>
  resume(conv_id: string | number): Promise<void>
  /**
   * The unsigned addresses of a process: its webhook, after `change`, and those of nodes with an
   * `api_callback`. Rejects with `key_missing`.
   */
  webhook(conv_id: string | number, change?: WebhookChange): Promise<WebhookInfo>
  /** Removes definitions and grants. Rejects with `process_has_tasks` for live tasks. */
  remove(conv_id: string | number): Promise<void>
  aliases(): Promise<Alias[]>
  /**
   * Names a process `@name` in definitions, of one stage where that is given. Rejects with
   * `not_possible`.
   */
  setAlias(name: string, conv_id: string | number, options?: InStage): Promise<AliasResult>
  /** Definitions that use the alias then find no process. */
  removeAlias(name: string, options?: InStage): Promise<void>
}

export interface PutOptions {
  /** Replaces the `obj_id` of a single definition. */
  readonly conv_id?: string | number
  /** For dropped nodes: old node id → the node to which tasks migrate. */
  readonly moves?: Readonly<Record<string, string>>
  /** Checks everything without a change; the result says what would be stored. */
  readonly dry_run?: boolean
}

export interface PutManyOptions extends PutOptions {
  /** Replaces ids and `@name`s of the file: id or `@name` → its id in this store. */
  readonly map?: Readonly<Record<string, string>>
  /** The id, title or short name of the only stage to take, or `none`: all, and of no stage. */
  readonly stage?: string
  /** The id or title of the only project whose stages to take. */
  readonly project?: string
}

export interface PutResult {
  readonly conv_id: string
  /** Starts at 1, one more with each change. */
  readonly version: number
  readonly state: 'created' | 'updated' | 'unchanged'
  /** Legal but harmful, such as a wait without a time limit. */
  readonly warnings: readonly string[]
  readonly waits_for: WaitsFor
  /** The definition opened its webhook: `processes.webhook` returns the address. */
  readonly webhook_opened?: true
}

/** Missing references of a definition; `warnings` has them in words. */
export interface WaitsFor {
  /** Logic types that only a handler runs. */
  readonly handlers: readonly string[]
  readonly variables: readonly string[]
  readonly aliases: readonly string[]
  readonly processes: readonly string[]
}

/** A JSON file of an export. */
export interface ExportFile {
  /** For messages; `_ENV_VARS_.json` files hold variables. */
  readonly name: string
  readonly text: string
  /** Found in a folder or archive: skipped if it has nothing of an export. */
  readonly is_found?: boolean
}

export interface VariableResult {
  readonly name: string
  readonly stage_id?: string
  /** `not_stored`: a secret; give its value to the engine. */
  readonly state: PutResult['state'] | 'not_stored'
}

export interface ImportResult {
  readonly processes: readonly PutResult[]
  readonly aliases: readonly AliasResult[]
  readonly variables: readonly VariableResult[]
  /** Files with nothing of an export. */
  readonly skipped: readonly string[]
}

/** Used as `@name` in definitions; here without the `@`. */
export interface Alias {
  readonly name: string
  readonly conv_id: string
  /** The stage whose definitions it is for; absent for those of no stage, and any other. */
  readonly stage_id?: string
}

export interface InStage {
  readonly stage_id?: string
}

export interface AliasResult extends Alias {
  readonly state: PutResult['state']
}

export type GivenVariables = Readonly<Record<string, unknown>>
