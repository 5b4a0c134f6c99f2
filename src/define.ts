/**
 * Processes written in TypeScript, for embedders who draw none. The result has the process format
 * of files, so it is stored, exported and drawn like any other. Node names are the ids and titles
 * of the nodes and known to the type system: a step that leads to a missing node does not compile.
 *
 *     const order = defineProcess({
 *       id: 1234,
 *       nodes: {
 *         start: go('wait'),
 *         wait: [callback(), when('paid', 'eq', true).go('done'), after({ days: 1 }).go('late')],
 *         done: end({ save: true }),
 *         late: end(),
 *       },
 *     })
 *
 * A node is its steps in order; tasks are created in the node called `start`.
 */
import type { Step } from './define-steps.ts'
import type { ValueType } from './process/values.ts'

export type { Comparison, ProcessName, Span, Step, Values } from './define-steps.ts'
export {
  addSums,
  after,
  atTime,
  callback,
  callHttp,
  callProcess,
  createTask,
  go,
  handled,
  modifyTask,
  queue,
  reply,
  replyError,
  runCode,
  setData,
  takeTask,
  when,
  whenTasks,
} from './define-steps.ts'

export type { ValueType } from './process/values.ts'

/** A node with a kind, a title or a position of its own. */
export interface NodeBody<out Name extends string = never> {
  readonly kind: 'logic' | 'escalation' | 'end'
  readonly steps: readonly Step<Name>[]
  /** Default: the node's name. */
  readonly title?: string
  readonly save?: boolean
  /** Position in drawings, in pixels; without it a layout is computed. */
  readonly x?: number
  readonly y?: number
}

export type NodeGiven<Name extends string> = Step<Name> | readonly Step<Name>[] | NodeBody<Name>

interface Appearance {
  readonly title?: string
  readonly x?: number
  readonly y?: number
}

/** A node with a title, a position or a kind of its own. */
export function node<Name extends string>(
  steps: Step<Name> | readonly Step<Name>[],
  more: Appearance & { readonly kind?: 'logic' | 'escalation' } = {},
): NodeBody<Name> {
  return { kind: 'logic', ...more, steps: listOf(steps) }
}

/** A node where tasks end. With `save` an ended task is kept for the retention time. */
export function end(more: Appearance & { readonly save?: boolean } = {}): NodeBody {
  return { kind: 'end', ...more, steps: [] }
}

/** An input parameter, checked when a task is created. */
export interface ParamGiven {
  readonly type?: ValueType
  readonly required?: boolean
  /** Masked in what people see of a task. */
  readonly masked?: boolean
  readonly regex?: string
  readonly regex_error_text?: string
}

export interface ProcessGiven<Name extends string> {
  readonly id: string | number
  readonly title?: string
  readonly description?: string
  /** In a `state` process a modify runs the steps of the node where the task waits. */
  readonly kind?: 'process' | 'state'
  readonly params?: Readonly<Record<string, ParamGiven>>
  readonly nodes: { readonly [Each in Name]: NodeGiven<NoInfer<Name>> } & {
    readonly start: NodeGiven<NoInfer<Name>>
  }
}

/** A definition in the process format, as `engine.putProcess` takes it. */
export interface ProcessDefinition {
  readonly obj_type: 1
  readonly obj_id: string | number
  readonly title: string
  readonly description: string
  readonly conv_type: 'process' | 'state'
  readonly status: 'active'
  readonly params: readonly object[]
  readonly scheme: { readonly nodes: readonly object[] }
}

/** Builds a definition. `putProcess` reports mistakes that its types do not show. */
export function defineProcess<const Name extends string>(
  given: ProcessGiven<Name>,
): ProcessDefinition {
  const { id, title = String(id), description = '', kind = 'process', params = {} } = given
  return {
    obj_type: 1,
    obj_id: id,
    title,
    description,
    conv_type: kind,
    status: 'active',
    params: Object.entries(params).map(([name, param]) => paramOf(name, param)),
    scheme: {
      nodes: Object.entries<NodeGiven<string>>(given.nodes).map(([name, body]) =>
        nodeOf(name, body),
      ),
    },
  }
}

function paramOf(name: string, given: ParamGiven): object {
  const { type = '', required, masked, regex = '', regex_error_text = '' } = given
  const flags = ['input', ...(required ? ['required'] : []), ...(masked ? ['auto-clear'] : [])]
  return { name, type, descr: '', flags, regex, regex_error_text }
}

/** `obj_type` of the process format, by kind. */
const obj_types = { logic: 0, start: 1, end: 2, escalation: 3 } as const

function nodeOf(name: string, given: NodeGiven<string>): object {
  const body = isBody(given) ? given : node(given)
  const { steps, save = false, title = name, x, y } = body
  const kind = name === 'start' ? 'start' : body.kind
  const definitions = (semaphor: boolean): object[] =>
    steps.filter((step) => step.semaphor === semaphor).map(({ definition }) => definition)
  return {
    id: name,
    obj_type: obj_types[kind],
    title,
    description: '',
    ...(x === undefined || y === undefined ? {} : { x, y }),
    condition: { logics: definitions(false), semaphors: definitions(true) },
    options: { save_task: save },
  }
}

function isBody(given: NodeGiven<string>): given is NodeBody<string> {
  return 'steps' in given
}

function listOf<One>(given: One | readonly One[]): readonly One[] {
  return Array.isArray(given) ? given : [given as One]
}
