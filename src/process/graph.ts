/** The compiled form of a process, which compile-process.ts makes and the engine executes. */
import type { Doc } from '../core/model.ts'
import type { Steps } from './definition-limits.ts'
import type { EvaluationContext, Logic } from './logic.ts'
import type { Template } from './templates/template.ts'

/** Creates a signal task when the node's task count reaches the value, and when it falls below. */
export interface CountSemaphor {
  readonly value: number
  readonly esc_node_id: string
}

/** When a time semaphor fires, or why its value gives no time. */
export type DueTime =
  | { readonly due_ms: number }
  | { readonly tag: string; readonly description: string }

export interface TimeSemaphor {
  readonly to_node_id: string
  due(context: EvaluationContext): DueTime
}

/**
 * How many tasks may be past a logic of a node at once, or how often one may pass it, for each
 * value of a key.
 */
export interface NodeLimit {
  /** The logic before which a task takes its slot. */
  readonly logic_at: number
  /** Names the limit in its node, also after another definition: the kind and text of the key. */
  readonly name: string
  readonly text: string
  readonly key: Template
  /** Infinity for a rate. */
  readonly at_once: number
  readonly rate: Rate | undefined
  /** For a key that cannot be made. */
  readonly err_node_id: string | undefined
}

/** `rate` tasks in `per_s` seconds, and up to `burst` at once after a pause. */
export interface Rate {
  readonly rate: number
  readonly per_s: number
  readonly burst: number
}

export type NodeKind = 'logic' | 'start' | 'end' | 'escalation'

export interface GraphNode {
  readonly id: string
  readonly kind: NodeKind
  readonly title: string
  readonly logics: readonly Logic[]
  /** In order of their logics; undefined for none. */
  readonly limits: readonly NodeLimit[] | undefined
  readonly time_semaphors: readonly TimeSemaphor[]
  readonly count_semaphors: readonly CountSemaphor[]
  /** Names of the running sums of this node, by the ids that `api_sum` gives them. */
  readonly sum_names: ReadonlyMap<string, string>
  /** On an end node: the ended task is kept for the retention time. */
  readonly save_task: boolean
  /** On a start node: an import of it opens the webhook of the process. */
  readonly direct_url: boolean
  /** On a start node: what a request to the webhook needs. */
  readonly lock: WebhookLock | undefined
  /** Its calls of processes are answered from a stub. */
  readonly is_stub: boolean
}

/** `unknown`: no request opens it. */
export type WebhookLock = 'unknown' | BasicLock

export interface BasicLock {
  readonly login: Template
  /** Constant `***` for a stored secret. */
  readonly secret: Template
}

export interface ParamMistake {
  readonly param: string
  readonly error: string
}

/** A process, compiled once per version. */
export interface Graph {
  /** The `obj_id` of the definition as text; undefined where it has none. */
  readonly conv_id: string | undefined
  readonly title: string
  /** In a `state` process a modify runs the logics of the node where the task waits. */
  readonly kind: 'process' | 'state'
  /** As the definition says. It counts only when the process is stored for the first time. */
  readonly status: 'active' | 'paused'
  /** Empty where there are no nodes: such a process is a draft and takes no tasks. */
  readonly start_id: string
  readonly nodes: ReadonlyMap<string, GraphNode>
  /** The first input parameter that the data does not satisfy. */
  checkParams(doc: Doc, steps: Steps): ParamMistake | undefined
  /** The processes that the definition names without a template. */
  readonly target_conv_ids: readonly string[]
  /** The variables that the definition names without a template. */
  readonly variables: readonly string[]
  /** The databases that the definition names. */
  readonly instances: readonly string[]
  /** Logic types that wait for a handler of the embedder; no task can reach them. */
  readonly missing_handlers: readonly string[]
}

export interface CompileResult {
  /** Undefined where there are mistakes. */
  readonly graph: Graph | undefined
  /** Every mistake with its place: `nodes[3] "Wait bank": to_node_id "x" is no node`. */
  readonly mistakes: readonly string[]
  /** The nodes of those that are in a node, by their text. */
  readonly mistaken_nodes: ReadonlyMap<string, NodeName>
  readonly warnings: readonly string[]
}

/** As a definition names a node, whether rightly or not. */
export interface NodeName {
  readonly node_id?: string
  readonly node_title?: string
}
