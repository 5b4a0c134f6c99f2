/**
 * Public types of imports: the options, and the result for each definition, alias and variable.
 */
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
  /** Its start asks for a webhook, which is open now: `processes.webhook` tells the address. */
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
