/**
 * The steps of a process in TypeScript (define.ts): one function for each logic and semaphor. The
 * type of a step names the nodes that it leads to. `processes.put` checks the values. Texts may
 * contain templates; a value that is no text is written as one, with its type.
 */
import { export_file_bytes_max } from './process/definition-limits.ts'
import type { JobRetry } from './process/logic.ts'
import type { HandlerType } from './process/logics/table.ts'
import type { Callback, DataSchema } from './process/process-types.ts'
import type { ValueType } from './process/values.ts'

/** A logic or a semaphor that leads to the nodes `Name`, and may wait for what `Wait` says. */
export interface Step<out Name extends string = never, out Wait = never> {
  readonly semaphor: boolean
  readonly definition: Readonly<Record<string, unknown>>
  /** Of a callback: what a modify must bring. */
  readonly schema?: DataSchema
  /** Only for the type system: never set. */
  readonly leads_to?: Name
  /** Only for the type system: never set. */
  readonly waits_for?: Wait
}

/** Values by key: texts, which may contain templates, and other plain JSON values. */
export type Values = Readonly<Record<string, unknown>>

interface Failing<Name extends string> {
  /**
   * The node for a failure, which sets `__conveyor_<kind>_return_type_tag__` and its like in the
   * data. Without it the task has failed in its node.
   */
  readonly error?: Name
}

interface Typed {
  /** Types of keys, where they differ from the types of the values. */
  readonly types?: Readonly<Record<string, ValueType>>
}

/** A process: its id, or the result of `defineProcess`. */
export type ProcessName = string | number | { readonly obj_id: string | number }

/** Sends the task to a node. */
export function go<const Name extends string>(to: Name): Step<Name> {
  return step('go', { to_node_id: to })
}

export type Comparison = 'eq' | 'not_eq' | 'less' | 'more' | 'less_or_eq' | 'more_or_eq' | 'regexp'

/** A condition whose node is still to be named. */
interface When {
  /** Adds a condition that must hold too. */
  and(param: string, fun: Comparison, value: unknown, cast?: ValueType): When
  go<const Name extends string>(to: Name): Step<Name>
}

/**
 * Sends the task to a node if all conditions hold; else the next step runs. `param` is the name of
 * a member of the data, or a template, as `{{a.b}}`. `cast` is by default the type of `value`.
 */
export function when(param: string, fun: Comparison, value: unknown, cast?: ValueType): When {
  return whenAll([condition(param, fun, value, cast)])
}

function whenAll(conditions: readonly object[]): When {
  return {
    and: (...more) => whenAll([...conditions, condition(...more)]),
    go: (to) => step('go_if_const', { to_node_id: to, conditions }),
  }
}

function condition(param: string, fun: Comparison, value: unknown, cast = typeOf(value)): object {
  return { param, fun, const: textOf(value), cast }
}

/** Sets keys of the data. */
export function setData<const Name extends string = never>(
  values: Values,
  { error, types }: Failing<Name> & Typed = {},
): Step<Name> {
  return step('set_param', { ...typed('extra', 'extra_type', values, types), ...errorTo(error) })
}

/**
 * Waits for a modify, or for the handler of the node's title; then the next step runs. `error` is
 * for the failure of a handler. `data` is a schema of what the modify must bring: `callback` of
 * `engine.process(…)` checks it, no other way to modify a task does.
 */
export function callback<
  const Name extends string = never,
  Schema extends DataSchema | undefined = undefined,
>({ error, data }: Failing<Name> & { readonly data?: Schema } = {}): Step<Name, Callback<Schema>> {
  const made = step('api_callback', { is_sync: false, obj_id_path: '', ...errorTo(error) })
  return data === undefined ? made : { ...made, schema: data }
}

interface CopyOptions<Name extends string> extends Failing<Name>, Typed {
  readonly data?: Values
  /** Sends the whole data of this task, with `data` over it. */
  readonly all?: boolean
}

/** Creates a task of a process and continues. */
export function createTask<const Name extends string = never>(
  process: ProcessName,
  { ref = '', ...options }: CopyOptions<Name> & { readonly ref?: string } = {},
): Step<Name> {
  return copyStep({ mode: 'create', conv_id: idOf(process), ref, is_sync: false }, options)
}

/** Merges data into the task of a process that has this ref, as a modify does. */
export function modifyTask<const Name extends string = never>(
  process: ProcessName,
  ref: string,
  { is_sync = false, ...options }: CopyOptions<Name> & { readonly is_sync?: boolean } = {},
): Step<Name> {
  return copyStep({ mode: 'modify', conv_id: idOf(process), ref, is_sync }, options)
}

function copyStep<Name extends string>(
  members: Values,
  { data = {}, types, all = false, error }: CopyOptions<Name>,
): Step<Name> {
  return step('api_copy', {
    ...{ ...members, send_parent_data: all, group: all ? 'all' : '' },
    ...typed('data', 'data_type', data, types),
    ...errorTo(error),
  })
}

/** Creates a task of a process and waits until it replies; the reply is merged. */
export function callProcess<const Name extends string = never>(
  process: ProcessName,
  { data = {}, types, all = false, error }: CopyOptions<Name> = {},
): Step<Name> {
  return step('api_rpc', {
    ...{ conv_id: idOf(process), group: all ? 'all' : '' },
    ...typed('extra', 'extra_type', data, types),
    ...errorTo(error),
  })
}

/** Sends data to the task that called this one: values, or keys of this task's own data. */
export function reply<const Name extends string = never>(
  data: Values | readonly string[],
  { error, types }: Failing<Name> & Typed = {},
): Step<Name> {
  return replyStep(data, types, { throw_exception: false, ...errorTo(error) })
}

/** Sends the task that called this one to its error node. */
export function replyError<const Name extends string = never>(
  reason: string,
  { data = {}, types, error }: Failing<Name> & Typed & { readonly data?: Values } = {},
): Step<Name> {
  const exception = { throw_exception: true, exception_reason: reason }
  return replyStep(data, types, { ...exception, ...errorTo(error) })
}

function replyStep<Name extends string>(
  data: Values | readonly string[],
  types: Typed['types'],
  more: object,
): Step<Name> {
  return isNames(data)
    ? step('api_rpc_reply', { mode: 'keys', res_data: data, res_data_type: types ?? {}, ...more })
    : step('api_rpc_reply', {
        ...{ mode: 'key_value', ...typed('res_data', 'res_data_type', data, types) },
        ...more,
      })
}

function isNames(data: Values | readonly string[]): data is readonly string[] {
  return Array.isArray(data)
}

/** Waits in the queue of its node until another task takes it. */
export function queue<const Name extends string = never>({
  data = {},
  types,
  error,
}: Failing<Name> & Typed & { readonly data?: Values } = {}): Step<Name> {
  return step('api_queue', { ...typed('data', 'data_type', data, types), ...errorTo(error) })
}

/** Takes the oldest or newest task of a queue; sets its data as `__queue_task_data__`. */
export function takeTask<const Name extends string = never>(
  process: ProcessName,
  node_id: string,
  { newest = false, error }: Failing<Name> & { readonly newest?: boolean } = {},
): Step<Name> {
  const order_by = newest ? 'DESC' : 'ASC'
  return step('api_get_task', { conv_id: idOf(process), node_id, order_by, ...errorTo(error) })
}

/** Adds to running sums of its node, which `{{node[name of the node].name of the sum}}` reads. */
export function addSums<const Name extends string = never>(
  terms: Readonly<Record<string, string | number>>,
  { error }: Failing<Name> = {},
): Step<Name> {
  const extra = Object.entries(terms).map(([name, value]) => ({
    ...{ id: name, name },
    value: String(value),
  }))
  return step('api_sum', { extra, ...errorTo(error) })
}

/** Runs JavaScript over `data` in the sandbox. */
export function runCode<const Name extends string = never>(
  src: string,
  { error }: Failing<Name> = {},
): Step<Name> {
  return step('api_code', { lang: 'js', src, ...errorTo(error) })
}

interface HttpOptions<Name extends string> extends Failing<Name>, Typed {
  readonly method?: string
  readonly data?: Values
  readonly headers?: Readonly<Record<string, string>>
  /** More attempts where a failure may pass; by default a call is made once. */
  readonly retry?: Partial<JobRetry>
  /** Sets `__conveyor_api_debug__`: how long the call took, its status, the sizes of the bodies. */
  readonly debug?: boolean
  /** Any other member of the format: `format`, `content_type`, `raw_body`, `max_threads`, … */
  readonly more?: Values
}

/** Calls an HTTP endpoint; an object in the response is merged into the data. */
export function callHttp<const Name extends string = never>(
  url: string,
  options: HttpOptions<Name> = {},
): Step<Name> {
  const { method = 'POST', data = {}, types, headers = {}, retry, debug, more, error } = options
  return step('api', {
    ...{ url, method, format: '', ...typed('extra', 'extra_type', data, types) },
    ...{ extra_headers: headers, ...(retry && { retry }), ...(debug && { debug_info: true }) },
    ...{ ...more, ...errorTo(error) },
  })
}

/** A logic that a handler of the embedder runs: `engine.handle(type, …)`. */
export function handled<const Name extends string = never>(
  type: HandlerType,
  { error, ...more }: Failing<Name> & Values = {},
): Step<Name, 'handler'> {
  return step(type, { ...more, ...errorTo(error) })
}

/**
 * How many tasks may be past a place of a process at once, or how often one may pass it, for each
 * value of a key: a text with templates, such as `{{customer}}`. One without is for all tasks.
 */
export type Limit =
  | { readonly key: string; readonly at_once: number }
  /** `rate` tasks in `per_s` seconds (1), and up to `burst` (the rate) at once after a pause. */
  | {
      readonly key: string
      readonly rate: number
      readonly per_s?: number
      readonly burst?: number
    }

/**
 * A step before which a task takes a slot of each limit, in this order; it waits in line until it
 * has them. It gives them back when it leaves the node, ends or fails.
 */
export function limited<const Name extends string = never, Wait = never>(
  limits: readonly Limit[],
  step: Step<Name, Wait>,
): Step<Name, Wait> {
  return { ...step, definition: { ...step.definition, limit: limits } }
}

/** A duration; members add up. */
export interface Span {
  readonly days?: number
  readonly hours?: number
  readonly minutes?: number
  readonly seconds?: number
}

/** A semaphor whose node is still to be named. */
interface Trigger {
  go<const Name extends string>(to: Name): Step<Name>
}

/** Sends the task to a node once it has waited so long, at any place in the steps. */
export function after({ days = 0, hours = 0, minutes = 0, seconds = 0 }: Span): Trigger {
  const value = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
  return { go: (to) => semaphor({ type: 'time', value, dimension: 'sec', to_node_id: to }) }
}

/** Sends the task to a node at a Unix second that a template gives. */
export function atTime(time: string): Trigger {
  return { go: (to) => semaphor({ type: 'time', value: time, dimension: 'sec', to_node_id: to }) }
}

/** Creates a signal task when the node's task count reaches the value, and when it falls below. */
export function whenTasks(value: number): Trigger {
  return { go: (to) => semaphor({ type: 'count', value, esc_node_id: to }) }
}

function step(type: string, members: Values): Step<never> {
  return { semaphor: false, definition: { type, ...members } }
}

function semaphor(definition: Values): Step<never> {
  return { semaphor: true, definition }
}

function errorTo(err_node_id: string | undefined): Values {
  return err_node_id === undefined ? {} : { err_node_id }
}

function idOf(process: ProcessName): string | number {
  return typeof process === 'object' ? process.obj_id : process
}

function typed(values: string, types: string, given: Values, asked: Typed['types'] = {}): Values {
  const texts: [string, string | null][] = []
  const kinds: [string, ValueType][] = []
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue
    texts.push([key, value === null ? null : textOf(value)])
    if (value === null) continue
    const type = Object.hasOwn(asked, key) ? asked[key] : typeOf(value)
    if (type !== undefined && !(isTemplate(value) && !Object.hasOwn(asked, key))) {
      kinds.push([key, type])
    }
  }
  return { [values]: Object.fromEntries(texts), [types]: Object.fromEntries(kinds) }
}

/** The value of a template keeps its own type unless one is asked for. */
function isTemplate(value: unknown): boolean {
  return typeof value === 'string' && /\{\{|\$\./.test(value)
}

function typeOf(value: unknown): ValueType {
  if (typeof value === 'number' || typeof value === 'bigint') return 'number'
  if (typeof value === 'boolean') return 'boolean'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'object' && value !== null ? 'object' : 'string'
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'bigint') return String(value)
  let left = value_chars_max
  return (
    JSON.stringify(value, (_key, member: unknown) => {
      left -= typeof member === 'string' ? member.length : value_chars
      if (left < 0) throw new RangeError('a value of a step is larger than a file of an export')
      return member
    }) ?? ''
  )
}

/** A small value that holds another one many times may serialise to more than memory. */
const value_chars_max = export_file_bytes_max
/** What a value counts beside its characters. */
const value_chars = 128
