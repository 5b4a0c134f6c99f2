/**
 * What a logic is: a pure function from its definition and an evaluation context to one command of
 * a closed list. A logic sees no store, no clock and no socket; the engine carries its command out.
 */
import type { Doc, JsonObject, JsonValue } from '../core/model.ts'

/** All that a logic and a template may look at. */
export interface EvaluationContext {
  /** The task's data; read its object with codec/json `objectOf`, and change nothing in it. */
  readonly doc: Doc
  readonly now_ms: number
  /** A double in [0, 1). */
  fraction(): number
  /** `root.` fields of the task: an unknown name is undefined. */
  rootField(name: RootName): JsonValue | undefined
  readonly task_bytes_max: number
  /**
   * Data of a task of another process, found by ref; undefined where there is none or the reach is
   * refused.
   */
  taskData(conv: TargetProcess, ref: string): JsonObject | undefined
  /** Live tasks in a node of this process. */
  nodeCount(node_id: string): number
  /** A running sum of a node of this process; undefined where nothing was added yet. */
  nodeSum(node_id: string, name: string): number | undefined
  /** A variable given to the engine; undefined where there is none of that name. */
  variable(name: string): JsonValue | undefined
}

/**
 * Which process a logic reaches. One written in the definition acts by the definition's right; one
 * that a template gave only where the user who made the task has a grant for it (a task without a
 * user: where the definition lists it).
 */
export interface TargetProcess {
  readonly conv_id: string
  readonly is_from_template: boolean
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

export type Command =
  /** Nothing to do here: the next logic of the node. */
  | { readonly command: 'next' }
  | { readonly command: 'go'; readonly to_node_id: string }
  /** The task's data becomes `doc`, then the next logic of the node. */
  | {
      readonly command: 'set'
      readonly doc: Doc
      /** Where the task goes if the whole of `doc` is over the size of a task. */
      readonly err_node_id: string | undefined
    }
  /** Rests until a modify; then the logics behind this one run. */
  | { readonly command: 'wait' }
  /** Makes a task of a process, sets the result field, then the next logic of the node. */
  | {
      readonly command: 'copy_create'
      readonly conv: TargetProcess
      readonly ref: string | undefined
      readonly doc: Doc
      readonly err_node_id: string | undefined
    }
  /** Merges into a task of a process as a modify does, sets the result field, then the next. */
  | {
      readonly command: 'copy_modify'
      readonly conv: TargetProcess
      readonly ref: string
      readonly doc: Doc
      readonly is_sync: boolean
      readonly err_node_id: string | undefined
    }
  /** Makes a task of the called process and rests until it replies or ends. */
  | {
      readonly command: 'call'
      readonly conv: TargetProcess
      readonly doc: Doc
      readonly err_node_id: string | undefined
    }
  /** Gives `data` to the caller, which goes on; then the next logic of this node. */
  | { readonly command: 'reply'; readonly data: Doc }
  /** Sends the caller to its err_node_id with `reason`; then the next logic of this node. */
  | { readonly command: 'reply_exception'; readonly data: Doc; readonly reason: string }
  /** Rests in the queue of this node until a task takes it; then the logics behind this one run. */
  | {
      readonly command: 'queue'
      /** The task's data from now on; undefined leaves it as it is. */
      readonly doc: Doc | undefined
      readonly err_node_id: string | undefined
    }
  /** Takes the oldest or newest task of a queue: its data comes in, and it goes on. */
  | {
      readonly command: 'take'
      readonly conv: TargetProcess
      readonly node_id: string
      readonly newest: boolean
      readonly err_node_id: string | undefined
    }
  /** Adds to running sums of this node, then the next logic. */
  | { readonly command: 'sum'; readonly terms: readonly { name: string; value: number }[] }
  /** Rests while something outside the transaction works for it (`work` of the logic). */
  | { readonly command: 'job' }
  /** To `err_node_id` with the error fields of `kind` set, or failed in this node without one. */
  | {
      readonly command: 'fail'
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
  targetNode(member: string, to_node_id: JsonValue | undefined): string | undefined
  /** A process that the definition names. */
  targetProcess(conv_id: string): void
}

/** Why a task waits in a node: for a callback, for the reply of a called task, or in a queue. */
export type WaitReason = 'callback' | 'reply' | 'queue'

export interface LogicKind<Definition> {
  readonly type: string
  /** Reads the raw logic. Mistakes go to `report`; the result then does not matter. */
  parse(raw: JsonObject, report: Report): Definition
  run(definition: Definition, context: EvaluationContext): Command
  /** What the task waits for here: the engine finds the logic again in a new definition by it. */
  readonly waits_for?: WaitReason
  /** Where a failed wait or work of this logic sends the task. */
  errNode?(definition: Definition): string | undefined
  /** What a `work` command asks for, and what its outcome does. */
  readonly job?: JobKind<Definition>
}

/** Work outside the transaction, after the commit, at least once. Pure, all but the doing. */
export interface JobKind<Definition> {
  /** The order as the data stands when the work begins, or the command where there can be none. */
  order(definition: Definition, context: EvaluationContext): JobOrder | Command
  /** What the outcome does to the task, over its data as it then is. */
  finish(
    definition: Definition,
    context: EvaluationContext,
    order_doc: Doc,
    outcome: JobOutcome,
  ): Command
}

export type JobOrder =
  | { readonly job: 'code'; readonly src: string; readonly doc: Doc }
  | { readonly job: 'call'; readonly request: CallRequest; readonly doc: Doc }
  /** The embedder's own code, registered under `handler`. */
  | { readonly job: 'handler'; readonly handler: string; readonly doc: Doc }

/** An HTTP request to be made. */
export interface CallRequest {
  readonly url: string
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | undefined
  /** At most so many of this logic's calls under way at once; 0 sets no bound of its own. */
  readonly threads_max: number
  /** Signs `url` and body as the public clients check it, at the moment of sending. */
  readonly sign: { readonly conv_id: string; readonly secret: string } | undefined
}

export type JobOutcome =
  /** JSON text for code and handlers; for a call the status and the body as text. */
  | {
      readonly outcome: 'done'
      readonly text: string
      readonly status?: number
      /** Of a call's answer, names in lower case. */
      readonly headers?: readonly (readonly [name: string, value: string])[]
    }
  | {
      readonly outcome: 'failed'
      readonly error_type: ErrorType
      readonly tag: string
      readonly description: string
    }

/** A logic of a compiled graph, with its definition bound. */
export interface Logic {
  readonly type: string
  readonly waits_for: WaitReason | undefined
  readonly err_node_id: string | undefined
  run(context: EvaluationContext): Command
  readonly job:
    | {
        order(context: EvaluationContext): JobOrder | Command
        finish(context: EvaluationContext, order_doc: Doc, outcome: JobOutcome): Command
      }
    | undefined
}

/** Sends a signal task when the number of tasks in the node comes to the value or falls below. */
export interface CountSemaphor {
  readonly value: number
  readonly esc_node_id: string
}

/** When a time semaphor rings, or why it cannot. */
export type DueTime =
  | { readonly due_ms: number }
  | { readonly tag: string; readonly description: string }

export interface TimeSemaphor {
  readonly to_node_id: string
  due(context: EvaluationContext): DueTime
}

export type NodeKind = 'logic' | 'start' | 'end' | 'escalation'

export interface GraphNode {
  readonly id: string
  readonly kind: NodeKind
  readonly title: string
  readonly logics: readonly Logic[]
  readonly time_semaphors: readonly TimeSemaphor[]
  readonly count_semaphors: readonly CountSemaphor[]
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
  /** In a `state` process a modify runs the logics of the node where the task rests. */
  readonly kind: 'process' | 'state'
  /** `active` or `paused`, as the definition says; counts only for a process that is new. */
  readonly status: 'active' | 'paused'
  readonly start_id: string
  readonly nodes: ReadonlyMap<string, GraphNode>
  /** The first input parameter that the data does not satisfy. */
  checkParams(doc: Doc): ParamMistake | undefined
  /** The processes that the definition names. */
  readonly target_conv_ids: readonly string[]
  /** Names of parameters with flag `auto-clear`. */
  readonly masked: readonly string[]
}

export interface CompileResult {
  /** Undefined where there are mistakes. */
  readonly graph: Graph | undefined
  /** Every mistake with its place: `nodes[3] "Wait bank": to_node_id "x" is no node`. */
  readonly mistakes: readonly string[]
  readonly warnings: readonly string[]
}
