/**
 * A process written in TypeScript, for those who embed and draw nothing. It gives the same format
 * that files have, so it is stored, exported and drawn as any other. The names of its nodes are
 * their ids and their titles, and the type system knows them: a step that leads to a node that is
 * not there does not compile.
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
 * A node is its steps in their order; the node called `start` is where tasks come in.
 */
import type { Step, ValueType } from './define-steps.ts'

export type { Comparison, ProcessName, Span, Step, Values, ValueType } from './define-steps.ts'
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

/** A node with more to say than its steps. */
export interface NodeBody<out Name extends string = never> {
  readonly kind: 'logic' | 'escalation' | 'end'
  readonly steps: readonly Step<Name>[]
  /** Instead of its name. */
  readonly title?: string
  readonly save?: boolean
  /** Where pictures draw it, in pixels; without it they lay it out. */
  readonly x?: number
  readonly y?: number
}

export type NodeGiven<Name extends string> = Step<Name> | readonly Step<Name>[] | NodeBody<Name>

interface Placed {
  readonly title?: string
  readonly x?: number
  readonly y?: number
}

/** A node with a title or a place of its own. */
export function node<Name extends string>(
  steps: Step<Name> | readonly Step<Name>[],
  more: Placed & { readonly kind?: 'logic' | 'escalation' } = {},
): NodeBody<Name> {
  return { kind: 'logic', ...more, steps: listOf(steps) }
}

/** Where a task ends. With `save` it is kept for the retention time, else it is gone. */
export function end(more: Placed & { readonly save?: boolean } = {}): NodeBody {
  return { kind: 'end', ...more, steps: [] }
}

/** An input parameter, checked when a task is created. */
export interface ParamGiven {
  readonly type?: ValueType
  readonly required?: boolean
  /** Masked where people look. */
  readonly masked?: boolean
  readonly regex?: string
  readonly regex_error_text?: string
}

export interface ProcessGiven<Name extends string> {
  readonly id: string | number
  readonly title?: string
  readonly description?: string
  /** In a `state` process a modify runs the steps of the node where the task rests. */
  readonly kind?: 'process' | 'state'
  readonly params?: Readonly<Record<string, ParamGiven>>
  readonly nodes: { readonly [Each in Name]: NodeGiven<NoInfer<Name>> } & {
    readonly start: NodeGiven<NoInfer<Name>>
  }
}

/** A definition in the process format, which `engine.putProcess` takes as it is. */
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

/** The definition of a process. What is wrong in it beyond its types, `putProcess` names. */
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

/** By obj_type of the format. */
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
