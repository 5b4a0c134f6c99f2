/**
 * The steps of a process written in TypeScript (define.ts): one small function for each logic and
 * semaphor of the process format, which gives that logic and remembers in its type which nodes it
 * leads to. Nothing here checks a value: the engine names every mistake when the process comes in.
 *
 * Texts may hold templates, `{{name}}`. A value that is no text is written as one with its type.
 */

/** A logic or a semaphor that leads to the nodes called `Name`. */
export interface Step<out Name extends string = never> {
  readonly semaphor: boolean
  readonly definition: Readonly<Record<string, unknown>>
  /** For the type system alone: never there. */
  readonly leads_to?: Name
}

/** What a key is set to: a text, which may hold templates, or any other plain JSON value. */
export type Values = Readonly<Record<string, unknown>>
export type ValueType = 'string' | 'number' | 'boolean' | 'array' | 'object'

interface Failing<Name extends string> {
  /** Where a failure leads; without it the task fails in its node. */
  readonly error?: Name
}

interface Typed {
  /** To what values are converted, where it is not what they are written as. */
  readonly types?: Readonly<Record<string, ValueType>>
}

/** A process: its id, or what `defineProcess` gave. */
export type ProcessName = string | number | { readonly obj_id: string | number }

/** Moves on. */
export function go<const Name extends string>(to: Name): Step<Name> {
  return step('go', { to_node_id: to })
}

export type Comparison = 'eq' | 'not_eq' | 'less' | 'more' | 'less_or_eq' | 'more_or_eq' | 'regexp'

interface When {
  /** One more condition, which must hold too. */
  and(param: string, fun: Comparison, value: unknown, cast?: ValueType): When
  go<const Name extends string>(to: Name): Step<Name>
}

/** Moves on if all conditions hold. `cast` is how both sides are read; by default as `value` is. */
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

/** Rests until a modify, or until the handler of the node's title has answered. */
export function callback<const Name extends string = never>({
  error,
}: Failing<Name> = {}): Step<Name> {
  return step('api_callback', { is_sync: false, obj_id_path: '', ...errorTo(error) })
}

interface CopyOptions<Name extends string> extends Failing<Name>, Typed {
  readonly data?: Values
  /** The whole data of this task goes along, under `data`. */
  readonly all?: boolean
}

/** Makes a task of a process and moves on. */
export function createTask<const Name extends string = never>(
  process: ProcessName,
  options: CopyOptions<Name> & { readonly ref?: string } = {},
): Step<Name> {
  const { ref = '', ...rest } = options
  return copyStep('create', process, ref, false, rest)
}

/** Merges data into the task of a process that has this ref, as a modify does. */
export function modifyTask<const Name extends string = never>(
  process: ProcessName,
  ref: string,
  options: CopyOptions<Name> & { readonly is_sync?: boolean } = {},
): Step<Name> {
  const { is_sync = false, ...rest } = options
  return copyStep('modify', process, ref, is_sync, rest)
}

function copyStep<Name extends string>(
  mode: string,
  process: ProcessName,
  ref: string,
  is_sync: boolean,
  { data = {}, types, all = false, error }: CopyOptions<Name>,
): Step<Name> {
  return step('api_copy', {
    ...{ mode, conv_id: idOf(process), ref, is_sync, send_parent_data: all },
    group: all ? 'all' : '',
    ...typed('data', 'data_type', data, types),
    ...errorTo(error),
  })
}

/** Makes a task of a process and rests until it replies; the reply is merged. */
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

/** Gives data to the task that called this one: values, or the names of keys of its own data. */
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

/** Rests in the queue of its node until another task takes it. */
export function queue<const Name extends string = never>({
  data = {},
  types,
  error,
}: Failing<Name> & Typed & { readonly data?: Values } = {}): Step<Name> {
  return step('api_queue', { ...typed('data', 'data_type', data, types), ...errorTo(error) })
}

/** Takes the oldest task of a queue, or the newest; its data comes as `__queue_task_data__`. */
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

/** Runs JavaScript over `data`, in the sandbox. */
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
  /** Any other member of the format: `format`, `content_type`, `raw_body`, `max_threads`, … */
  readonly more?: Values
}

/** Calls an HTTP endpoint; a JSON object it answers is merged. */
export function callHttp<const Name extends string = never>(
  url: string,
  { method = 'POST', data = {}, types, headers = {}, more = {}, error }: HttpOptions<Name> = {},
): Step<Name> {
  return step('api', {
    ...{ url, method, format: '', ...typed('extra', 'extra_type', data, types) },
    ...{ extra_headers: headers, ...more, ...errorTo(error) },
  })
}

/** A logic that the embedder runs: `engine.handle(type, …)`. */
export function handled<const Name extends string = never>(
  type: 'git_call' | 'db_call' | 'api_form' | 'api_git',
  { error, ...more }: Failing<Name> & Values = {},
): Step<Name> {
  return step(type, { ...more, ...errorTo(error) })
}

/** How long from coming to rest; members add up. */
export interface Span {
  readonly days?: number
  readonly hours?: number
  readonly minutes?: number
  readonly seconds?: number
}

interface Leading {
  go<const Name extends string>(to: Name): Step<Name>
}

/** Once the task has rested so long. */
export function after({ days = 0, hours = 0, minutes = 0, seconds = 0 }: Span): Leading {
  const value = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
  return { go: (to) => semaphor({ type: 'time', value, dimension: 'sec', to_node_id: to }) }
}

/** At a Unix second that a template gives. */
export function atTime(time: string): Leading {
  return { go: (to) => semaphor({ type: 'time', value: time, dimension: 'sec', to_node_id: to }) }
}

/** Sends a signal task when so many tasks rest in the node, and when they are fewer again. */
export function whenTasks(value: number): Leading {
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

/** What a template gives keeps its own type. */
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
  return typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? '')
}
