/**
 * What a logic is: a pure function from its definition and an evaluation context to one command of
 * a closed list. It has no access to store, clock or socket; the engine executes the command.
 */
import type { Doc, JsonObject, JsonValue } from '../core/model.ts'
import type { Steps } from './definition-limits.ts'
import type { CodeLibrary } from './logics/code-libraries.ts'
import type { Report } from './report.ts'

/** Everything that a logic or a template may read. */
export interface EvaluationContext {
  /** The task's data. Read its object with `objectOf` of codec/json; do not change it. */
  readonly doc: Doc
  readonly now_ms: number
  /** A random double in [0, 1). */
  fraction(): number
  /** A `root.` field of the task; undefined where the task has no value for it. */
  rootField(name: RootName): JsonValue | undefined
  readonly task_bytes_max: number
  /** What this logic may still compute. */
  readonly steps: Steps
  /** Whether there is such a process and the task may read it. */
  canRead(conv: TargetProcess): boolean
  /** Data of a task of a process, found by ref; undefined where there is none or no permission. */
  taskData(conv: TargetProcess, ref: string): JsonObject | undefined
  /** Live tasks in a node of a process, by default of this one; undefined without permission. */
  nodeCount(node_id: string, conv?: TargetProcess): number | undefined
  /** A running sum of a node, by name or id; undefined also where nothing has been added yet. */
  nodeSum(node_id: string, name: string, conv?: TargetProcess): number | undefined
  /** The callback address of a node; undefined also where it takes no callbacks. */
  callbackUrl(node_id: string, conv?: TargetProcess): string | undefined
  /** A variable given to the engine; undefined where there is none of that name. */
  variable(name: string): JsonValue | undefined
}

/**
 * The process that a logic acts on. An id written in the definition acts with the definition's
 * permissions. An id that a template gives needs a grant of the user who created the task; for a
 * task without a user, the definition must name that process somewhere.
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

/** Whether a retry may help. Stored in `__conveyor_<kind>_return_type_error__`. */
export type ErrorType = 'hardware' | 'software'

interface Failure {
  readonly error_type: ErrorType
  readonly tag: string
  readonly description: string
}

/** A command that may fail: where the task goes then. */
interface Failing {
  readonly err_node_id: string | undefined
}

/** A command that brings data to a process. */
interface Sending extends Failing {
  readonly conv: TargetProcess
  readonly doc: Doc
}

/** What the engine does next for the task. The next logic runs after it unless stated otherwise. */
export type Command =
  | { readonly command: 'next' }
  | { readonly command: 'go'; readonly to_node_id: string }
  /** The task's data becomes `doc`. */
  | (Failing & { readonly command: 'set'; readonly doc: Doc })
  /** Waits for a modify; the logics after this one run then. */
  | { readonly command: 'wait' }
  /** Creates a task of a process and sets the result field. */
  | (Sending & { readonly command: 'copy_create'; readonly ref: string | undefined })
  /** Merges `doc` into a task of a process, as a modify does, and sets the result field. */
  | (Sending & { readonly command: 'copy_modify'; readonly ref: string; readonly is_sync: boolean })
  /** Creates a task of the called process and waits until it replies or ends. */
  | (Sending & { readonly command: 'call' })
  /** Merges `data` into the caller, which continues. */
  | { readonly command: 'reply'; readonly data: Doc }
  /** Sends the caller to its `err_node_id` with `reason`. */
  | {
      readonly command: 'reply_exception'
      readonly data: Doc
      readonly reason: string
      /** What this task does then, where its data could not be made; else the next logic runs. */
      readonly failure: FailCommand | undefined
    }
  /** Waits in the queue of this node, with `doc` if given; the logics after it run when taken. */
  | (Failing & { readonly command: 'queue'; readonly doc: Doc | undefined })
  /** Takes the oldest or newest task of a queue: its data comes in, and the taken task goes on. */
  | (Failing & {
      readonly command: 'take'
      readonly conv: TargetProcess
      readonly node_id: string
      readonly newest: boolean
    })
  /** Adds to running sums of this node. */
  | { readonly command: 'sum'; readonly terms: readonly { name: string; value: number }[] }
  /** Waits in the line of a limit. Only the engine gives it, before a logic is run. */
  | { readonly command: 'slot' }
  /** Waits while a job runs outside the transaction (`job` of the logic). */
  | { readonly command: 'job' }
  /** Goes to `err_node_id` with the error fields of `kind` set; without one the task has failed. */
  | (Failing &
      Failure & {
        readonly command: 'fail'
        readonly kind: string
        /** The task's data becomes `doc` before the error fields are set. */
        readonly doc?: Doc | undefined
      })

export type FailCommand = Extract<Command, { command: 'fail' }>

/** Why a task waits in a node: for a callback, for the reply of a called task, or in a queue. */
export type WaitReason = 'callback' | 'reply' | 'queue'

/** A kind of logic: one row of logics/table.ts. */
export interface LogicKind {
  readonly type: string
  /** What a task waits for here. The engine finds the logic by it after a new definition. */
  readonly waits_for?: WaitReason
  /** Compiles a raw logic. Mistakes go to `report`; the result is not used then. */
  compile(raw: JsonObject, report: Report): CompiledLogic
}

export interface CompiledLogic {
  /** The node for failures, also of a wait or a job. */
  readonly err_node_id?: string | undefined
  run(context: EvaluationContext): Command
  /** What a `job` command orders, and what its outcome does. */
  readonly job?: LogicJob | undefined
  /** How the callback address of its node is used. */
  readonly callback?: CallbackRules | undefined
}

/** How a request to a callback address names its task (wire 1.11). */
export interface CallbackRules {
  /** Only a task that waits in the node takes the request. */
  readonly is_sync: boolean
  /** The names that lead to the task's id in the body; empty for the default. */
  readonly id_path: readonly string[]
}

/** A job runs outside the transaction, after the commit, at least once. Both functions are pure. */
export interface LogicJob {
  /** The order, from the data when the job starts; a command where no order can be made. */
  order(context: EvaluationContext): JobOrder | Command
  /** What the outcome does to the task; `context` has the data when the outcome arrives. */
  finish(context: EvaluationContext, order: JobOrder, outcome: JobOutcome): Command
  /**
   * Of a query: the `instance_id` that it names, empty for none. A handler of the logic's type runs
   * in place of it, where one is registered.
   */
  readonly instance?: string
}

/** The language of a database. */
export type SqlDialect = 'postgres' | 'mysql'

/** `db_call`, for an engine with databases. */
export interface DbCallKinds {
  /** `is_checked`: mistakes of the query refuse the definition; otherwise a task fails by them. */
  kind(is_checked: boolean): LogicKind
  /** What an `instance_id` may name. */
  readonly instances: readonly string[]
}

/** A logic of a compiled graph. */
export interface Logic extends CompiledLogic {
  readonly type: string
  readonly waits_for: WaitReason | undefined
  readonly err_node_id: string | undefined
  readonly job: LogicJob | undefined
  readonly callback: CallbackRules | undefined
}

export type JobOrder =
  | {
      readonly job: 'code'
      readonly src: string
      readonly libraries: readonly CodeLibrary[]
      readonly doc: Doc
    }
  | { readonly job: 'call'; readonly request: CallRequest; readonly doc: Doc }
  /** One statement with its bound values, for a database of the operator. */
  | {
      readonly job: 'db'
      readonly instance: string
      readonly text: string
      readonly values: readonly (string | null)[]
      readonly time_ms_max: number
      readonly doc: Doc
    }
  /** The embedder's own function, registered under `handler`. */
  | {
      readonly job: 'handler'
      readonly handler: string
      /** Whether the job waits until there is a handler; otherwise it fails without one. */
      readonly is_awaited: boolean
      readonly doc: Doc
    }

/** An HTTP request that an `api` logic orders. */
export interface CallRequest {
  readonly url: string
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | undefined
  /** Limit of this logic's concurrent calls; 0 is no limit of its own. */
  readonly threads_max: number
  /** Sign the URL and the body at the time of sending, as the public clients check it. */
  readonly sign: { readonly conv_id: string; readonly secret: string } | undefined
  /** The client certificate with its private key, in PEM. Never shown. */
  readonly cert_pem: string | undefined
  readonly retry: JobRetry
}

/** How often a job is tried. The pause after an attempt doubles each time. */
export interface JobRetry {
  readonly attempts_max: number
  readonly backoff_ms: number
}

export type JobOutcome = (
  | {
      readonly outcome: 'done'
      /**
       * JSON of code and handlers. Of a call the body of a success: XML as its JSON, an image in
       * base64.
       */
      readonly text: string
      readonly status?: number
      /** Of a call's response; names in lower case. */
      readonly headers?: readonly (readonly [name: string, value: string])[]
    }
  | (Failure & { readonly outcome: 'failed' })
) & {
  /** A later attempt may succeed. */
  readonly may_pass?: boolean
  /** Of a handler that has thrown: the line of the program, for the logger. */
  readonly thrown_in?: string | undefined
  /** Of a call that was answered. */
  readonly figures?: CallFigures
}

/** What was measured of a call that was answered. */
export interface CallFigures {
  readonly exec_ms: number
  readonly request_bytes: number
  readonly status: number
  readonly response_bytes: number
}
