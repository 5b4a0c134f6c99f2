/**
 * Processes written in TypeScript. The result has the process format, so it is stored, exported and
 * drawn like any other. Node names are known to the type system: a step to a missing node does not
 * compile.
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
import type { InputOf, OutputOf, StandardSchema } from './core/standard-schema.ts'
import type { Limit, Step } from './define-steps.ts'
import {
  type AnyData,
  type Callback,
  type DataSchema,
  type NodeDefinition,
  type ProcessDefinition,
  type ProcessTypes,
  type Rereadable,
  type Stored,
  schemas_of,
} from './process/process-types.ts'
import type { ValueType } from './process/values.ts'

export type { SchemaIssue, SchemaResult, StandardSchema } from './core/standard-schema.ts'
export type { Comparison, Limit, ProcessName, Span, Step, Values } from './define-steps.ts'
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
  limited,
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
export type { DataSchema, ProcessDefinition, ProcessTypes } from './process/process-types.ts'
export type { ValueType } from './process/values.ts'

/** A node with a kind, a title or a position of its own. */
export interface NodeBody<out Name extends string = never, out Wait = never> {
  readonly kind: 'logic' | 'escalation' | 'end'
  readonly steps: readonly Step<Name, Wait>[]
  /** Slots that a task takes when it enters the node, before the first step (`limited`). */
  readonly limit?: readonly Limit[]
  /** Default: the node's name. */
  readonly title?: string
  readonly save?: boolean
  /** Position in drawings, in pixels; without it a layout is computed. */
  readonly x?: number
  readonly y?: number
}

export type NodeGiven<Name extends string> =
  | Step<Name, unknown>
  | readonly Step<Name, unknown>[]
  | NodeBody<Name, unknown>

/** What the steps of a node may wait for. */
type WaitOf<Given> =
  Given extends Step<string, infer Wait>
    ? unknown extends Wait
      ? never
      : Wait
    : Given extends readonly (infer One)[]
      ? WaitOf<One>
      : Given extends NodeBody<string, infer Wait>
        ? Wait
        : never

interface Appearance {
  readonly title?: string
  readonly x?: number
  readonly y?: number
}

/** A node with a title, a position or a kind of its own. */
export function node<Name extends string, const Given = unknown>(
  steps: (Step<Name, unknown> | readonly Step<Name, unknown>[]) & Given,
  more: Appearance & Pick<NodeBody, 'limit'> & { readonly kind?: 'logic' | 'escalation' } = {},
): NodeBody<Name, WaitOf<Given>> {
  return { kind: 'logic', ...more, steps: listOf(steps) as Step<Name, WaitOf<Given>>[] }
}

/**
 * A node where tasks end. With `save` an ended task is kept for the limit `ended_kept_ms`, seven
 * days by default; without it the task is removed.
 */
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

export interface ProcessGiven<Name extends string, Nodes, Data extends DataSchema> {
  /** The `conv_id` of its tasks: 1 to 64 characters, the same at each start. */
  readonly id: string | number
  readonly title?: string
  readonly description?: string
  /** In a `state` process a modify runs the steps of the node where the task waits. */
  readonly kind?: 'process' | 'state'
  /** Input parameters by name: unlike a schema they are in the file and hold for every caller. */
  readonly params?: Readonly<Record<string, ParamGiven>>
  /**
   * A Standard Schema (zod, valibot, arktype …) of the data of a task, at any time of its life: a
   * member that comes later is optional. See `engine.process`.
   */
  readonly data?: Data & Rereadable<Data>
  /**
   * By name. The steps of a node run in order until one sends the task on or makes it wait; a task
   * that comes to the end of the steps rests in the node. Tasks begin in `start`.
   */
  readonly nodes: { readonly [Each in Name]: NodeGiven<NoInfer<Name>> } & {
    readonly start: NodeGiven<NoInfer<Name>>
  } & Nodes & { readonly [Each in keyof Nodes]: Fitting<WaitOf<Nodes[Each]>, InputOf<Data>> }
}

/** What a modify brings becomes part of the data, so their schemas agree on what they share. */
type Fitting<Wait, Data> =
  Extract<Wait, Callback<DataSchema>> extends Callback<infer Schema extends DataSchema>
    ? Stored<Pick<OutputOf<Schema>, keyof OutputOf<Schema> & keyof Data>> extends Partial<Data>
      ? unknown
      : { readonly 'the schema of a callback gives a member of the data another type': never }
    : unknown

type CallbackNames<Nodes> = {
  [Each in keyof Nodes]: Extract<
    WaitOf<Nodes[Each]>,
    Callback<DataSchema | undefined>
  > extends never
    ? never
    : Each
}[keyof Nodes]

type HandledNames<Nodes> = {
  [Each in keyof Nodes]: WaitOf<Nodes[Each]> extends never ? never : Each
}[keyof Nodes]

/** What the type system knows of a process with these nodes and this schema. */
export interface TypesOf<Nodes, Data extends DataSchema> extends ProcessTypes {
  readonly input: InputOf<Data>
  readonly output: OutputOf<Data>
  readonly callbacks: {
    readonly [Each in CallbackNames<Nodes>]: Brought<WaitOf<Nodes[Each]>, Partial<InputOf<Data>>>
  }
  readonly handled: HandledNames<Nodes> & string
}

type Brought<Wait, Without> =
  Wait extends Callback<infer Schema>
    ? Schema extends DataSchema
      ? InputOf<Schema>
      : Without
    : never

/** Builds a definition. `processes.put` reports mistakes that its types do not show. */
export function defineProcess<
  const Name extends string,
  const Nodes = unknown,
  Data extends DataSchema = StandardSchema<AnyData, AnyData>,
>(given: ProcessGiven<Name, Nodes, Data>): ProcessDefinition<TypesOf<Nodes, Data>> {
  const { id, title = String(id), description = '', kind = 'process', params = {} } = given
  const nodes = Object.entries<NodeGiven<string>>(given.nodes).map(
    ([name, body]) => [name, isBody(body) ? body : node(body)] as const,
  )
  return {
    obj_type: 1,
    obj_id: id,
    title,
    description,
    conv_type: kind,
    status: 'active',
    params: Object.entries(params).map(([name, param]) => paramOf(name, param)),
    scheme: { nodes: nodes.map(([name, body]) => nodeOf(name, body)) },
    [schemas_of]: {
      data: given.data,
      callbacks: Object.fromEntries(nodes.flatMap(([name, { steps }]) => schemaOf(name, steps))),
    },
  }
}

/** The schema of a node's callback, by the name of the node. */
function schemaOf(name: string, steps: readonly Step<string, unknown>[]): [string, DataSchema][] {
  const schemas = steps.flatMap(({ schema }) => (schema === undefined ? [] : [schema]))
  if (schemas.length > 1) throw new TypeError(`node "${name}" has two callbacks with a schema`)
  return schemas.map((schema) => [name, schema])
}

function paramOf(name: string, given: ParamGiven): object {
  const { type = '', required, masked, regex = '', regex_error_text = '' } = given
  const flags = ['input', ...(required ? ['required'] : []), ...(masked ? ['auto-clear'] : [])]
  return { name, type, descr: '', flags, regex, regex_error_text }
}

/** `obj_type` of the process format, by kind. */
const obj_types = { logic: 0, start: 1, end: 2, escalation: 3 } as const

function nodeOf(name: string, body: NodeBody<string, unknown>): NodeDefinition {
  const { steps, limit, save = false, title = name, x, y } = body
  const kind = name === 'start' ? 'start' : body.kind
  const definitions = (semaphor: boolean): AnyData[] =>
    steps.filter((step) => step.semaphor === semaphor).map(({ definition }) => definition)
  return {
    id: name,
    obj_type: obj_types[kind],
    title,
    description: '',
    ...(x === undefined || y === undefined ? {} : { x, y }),
    ...(limit === undefined ? {} : { limit }),
    condition: { logics: definitions(false), semaphors: definitions(true) },
    options: { save_task: save },
  }
}

function isBody(given: NodeGiven<string>): given is NodeBody<string, unknown> {
  return 'steps' in given
}

function listOf<One>(given: One | readonly One[]): readonly One[] {
  return Array.isArray(given) ? given : [given as One]
}
