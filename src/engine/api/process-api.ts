/**
 * Public types for storing, importing and administering processes.
 */
import type { Status } from '../../core/model.ts'

export interface ProcessInfo {
  readonly conv_id: string
  readonly title: string
  /** A draft has no nodes yet and takes no tasks. */
  readonly status: 'active' | 'paused' | 'draft'
  readonly version: number
  /** SHA-256 of the canonical text of the definition, hex. */
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
    /** Live ones. */
    readonly tasks: number
    readonly by_status: Readonly<Record<Status, number>>
    readonly to: readonly string[]
    /** What tasks wait for in it, such as `callback`, `timer`, `call`. */
    readonly waits_for: readonly string[]
    /** The name of the handler that answers in the node, where the program has one. */
    readonly handler?: string
  }[]
  readonly shared_with: readonly { readonly user: string; readonly can: readonly Can[] }[]
}

export interface WebhookChange {
  /** `new` replaces an open address, `off` closes it. By default an open one stays. */
  readonly address?: 'new' | 'off'
  /** Opens the webhook; each request must carry HTTP basic credentials of this user. */
  readonly user?: string | number
}

/** Addresses are URLs, or paths before an HTTP server listens. */
export interface WebhookInfo {
  readonly conv_id: string
  /** Null while it is closed. */
  readonly address: string | null
  /** The user whose credentials a request must carry, if any. */
  readonly user: string | null
  readonly callbacks: readonly { readonly node_id: string; readonly address: string }[]
}

export type Can = 'create' | 'modify' | 'show'

export interface Processes {
  /**
   * Compiles and stores a definition: the value of `defineProcess` of `conveyor-engine/define`, or
   * one in the process format, as JSON text or plain values. To be called at each start: what has
   * not changed is left alone, and what has is the next version, in which the tasks of the process
   * go on. Rejects with `bad_definition`, whose `mistakes` name each mistake with its place, and
   * with `tasks_in_node` where it drops a node with tasks and `moves` does not say where they go.
   */
  put(definition: unknown, options?: PutOptions): Promise<PutResult>
  /**
   * Stores all definitions and aliases of an export, or none: one definition, an array, or a folder
   * with its children, as JSON text or plain values. Rejects as `put`; each mistake names
   * its definition.
   */
  putMany(definitions: unknown, options?: PutManyOptions): Promise<PutResult[]>
  /**
   * The same for several files, whose variables are stored too; each mistake names its file.
   * `readExport` of `conveyor-engine/files` reads them from disk, also from folders and zip files.
   */
  importFiles(files: readonly ExportFile[], options?: PutManyOptions): Promise<ImportResult>
  list(): Promise<ProcessInfo[]>
  /**
   * With `version` as an earlier definition has it: its title, nodes and text; the tasks in them
   * are those of now. Rejects with `not_possible` for a version that it never had.
   */
  show(conv_id: string | number, version?: number): Promise<ProcessDetails>
  /** The last 1,000 versions, the newest first. */
  versions(conv_id: string | number): Promise<number[]>
  /** Lets a user of the signed API use a process; `can` defaults to all three rights. */
  share(conv_id: string | number, user: string | number, can?: readonly Can[]): Promise<void>
  unshare(conv_id: string | number, user: string | number): Promise<void>
  /**
   * Until `resume` its creates and modifies are refused with `conveyor_is_not_active`, and its
   * timers, jobs and handlers wait.
   */
  pause(conv_id: string | number): Promise<void>
  resume(conv_id: string | number): Promise<void>
  /**
   * The addresses of a process that need no signature: its webhook, after `change`, and those of
   * its nodes with an `api_callback`. Rejects with `key_missing`.
   */
  webhook(conv_id: string | number, change?: WebhookChange): Promise<WebhookInfo>
  /** Removes its definitions and grants. Rejects with `process_has_tasks` for live tasks. */
  remove(conv_id: string | number): Promise<void>
  aliases(): Promise<Alias[]>
  /** Lets `@name` in definitions stand for a process. Rejects with `not_possible`. */
  setAlias(name: string, conv_id: string | number): Promise<AliasResult>
  /** Without the alias, what uses it finds no process. */
  removeAlias(name: string): Promise<void>
}

export interface PutOptions {
  /** Replaces the `obj_id` of the definition; only where there is one definition. */
  readonly conv_id?: string | number
  /** For nodes that the new definition drops: old node id → the node to which tasks migrate. */
  readonly moves?: Readonly<Record<string, string>>
  /** Checks everything and changes nothing; the result says what would be stored. */
  readonly dry_run?: boolean
}

export interface PutManyOptions extends PutOptions {
  /** Id of a process in the file, or `@name` → its id in this store, wherever the file names it. */
  readonly map?: Readonly<Record<string, string>>
}

export interface PutResult {
  readonly conv_id: string
  /** 1 for the first, one more with each change. */
  readonly version: number
  readonly state: 'created' | 'updated' | 'unchanged'
  /** Sentences about what is legal and will hurt, such as a wait without a time limit. */
  readonly warnings: readonly string[]
  readonly waits_for: WaitsFor
  /** Its start asks for a webhook, which is open now: `processes.webhook` returns the address. */
  readonly webhook_opened?: true
}

/** What a definition names and what is not there yet; `warnings` says it in words. */
export interface WaitsFor {
  /** Logic types that only a handler runs. */
  readonly handlers: readonly string[]
  readonly variables: readonly string[]
  readonly aliases: readonly string[]
  readonly processes: readonly string[]
}

/** A JSON file of an export. `readExport` of `conveyor-engine/files` reads them from disk. */
export interface ExportFile {
  /** For messages; files called `_ENV_VARS_.json` are known by it. */
  readonly name: string
  readonly text: string
  /** Found in a folder or archive: without anything of an export in it, it is skipped. */
  readonly is_found?: boolean
}

export interface VariableResult {
  readonly name: string
  /** `not_stored`: a secret, whose value is to be given to the engine. */
  readonly state: PutResult['state'] | 'not_stored'
}

export interface ImportResult {
  readonly processes: readonly PutResult[]
  readonly aliases: readonly AliasResult[]
  readonly variables: readonly VariableResult[]
  /** The names of files that hold nothing of an export. */
  readonly skipped: readonly string[]
}

/** A name that definitions may use as `@name` instead of an id; here without its `@`. */
export interface Alias {
  readonly name: string
  readonly conv_id: string
}

export interface AliasResult extends Alias {
  readonly state: PutResult['state']
}

/** Values by name. */
export type GivenVariables = Readonly<Record<string, unknown>>
