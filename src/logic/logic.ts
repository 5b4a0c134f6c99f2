/**
 * What a logic is (law 6): a pure function from its definition and a scope to one move of a closed
 * list. A logic sees no store, no clock and no socket; `walk` applies its moves.
 */
import type { Doc, JsonObject, JsonValue } from '../words/model.ts'

/** All that a logic and a template may look at. */
export interface Scope {
  /** The task's data; read its object with bytes/json `objectOf`, and change nothing in it. */
  readonly doc: Doc
  readonly now_ms: number
  /** A double in [0, 1). */
  fraction(): number
  /** `root.` fields of the task: an unknown name is undefined. */
  root(name: RootName): JsonValue | undefined
  readonly task_bytes_max: number
}

export const rootNames = [
  'task_id',
  'ref',
  'conv_id',
  'node_id',
  'prev_node_id',
  'node_name',
  'prev_node_name',
  'status',
  'create_time',
  'change_time',
  'end_time',
  'user_id',
] as const
export type RootName = (typeof rootNames)[number]

/** Whether another try may help: goes into `__conveyor_<kind>_return_type_error__`. */
export type ErrorType = 'hardware' | 'software'

export type Move =
  /** Nothing to do here: the next logic of the node. */
  | { readonly move: 'next' }
  | { readonly move: 'go'; readonly to_node_id: string }
  /** The task's data becomes `doc`, then the next logic of the node. */
  | {
      readonly move: 'set'
      readonly doc: Doc
      /** Where the task goes if the whole of `doc` is over the size of a task. */
      readonly err_node_id: string | undefined
    }
  /** Rests until a modify; then the logics behind this one run. */
  | { readonly move: 'rest' }
  /** To `err_node_id` with the error fields of `kind` set, or failed in this node without one. */
  | {
      readonly move: 'fail'
      readonly kind: string
      readonly error_type: ErrorType
      readonly tag: string
      readonly description: string
      readonly err_node_id: string | undefined
    }

/** Notes a mistake or a warning at the place where parsing stands. */
export interface Report {
  mistake(text: string): void
  warning(text: string): void
  /** The node id that `member` names. Notes a mistake and gives undefined where it is no node. */
  target(member: string, to_node_id: JsonValue | undefined): string | undefined
}

export interface LogicKind<Definition> {
  readonly type: string
  /** Reads the raw logic. Mistakes go to `report`; the result then does not matter. */
  parse(raw: JsonObject, report: Report): Definition
  run(definition: Definition, scope: Scope): Move
  /** Whether the task rests here for a callback. */
  readonly is_wait?: true
}

/** A logic of a compiled graph, with its definition bound. */
export interface Logic {
  readonly type: string
  readonly is_wait: boolean
  run(scope: Scope): Move
}

/** When a time semaphor rings, or why it cannot. */
export type DueTime =
  | { readonly due_ms: number }
  | { readonly tag: string; readonly description: string }

export interface TimeSemaphor {
  readonly to_node_id: string
  due(scope: Scope): DueTime
}

export type NodeKind = 'logic' | 'start' | 'end' | 'escalation'

export interface GraphNode {
  readonly id: string
  readonly kind: NodeKind
  readonly title: string
  readonly logics: readonly Logic[]
  readonly time_semaphors: readonly TimeSemaphor[]
  /** On an end: the ended task is kept for the retention time. */
  readonly save_task: boolean
}

export interface ParamMistake {
  readonly param: string
  readonly error: string
}

/** A process, compiled once per version. */
export interface Graph {
  /** The `obj_id` of the definition as text, where it has one. */
  readonly conv_id: string | undefined
  readonly title: string
  /** `active` or `paused`, as the definition says; counts only for a process that is new. */
  readonly status: 'active' | 'paused'
  readonly start_id: string
  readonly nodes: ReadonlyMap<string, GraphNode>
  /** The first input parameter that the data does not satisfy. */
  checkParams(doc: Doc): ParamMistake | undefined
  /** Names of parameters with flag `auto-clear`. */
  readonly masked: readonly string[]
}

export interface Compiled {
  /** Undefined where there are mistakes. */
  readonly graph: Graph | undefined
  /** Every mistake with its place: `nodes[3] "Wait bank": to_node_id "x" is no node`. */
  readonly mistakes: readonly string[]
  readonly warnings: readonly string[]
}
