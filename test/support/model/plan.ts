/**
 * Processes as plans: the engine gets the definition made of a plan, and the model runs the plan
 * itself, so neither depends on the other.
 */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type Data = Readonly<Record<string, Json>>

export const value_types = ['string', 'number', 'boolean', 'array', 'object'] as const
export type ValueType = (typeof value_types)[number]

/** What a template reads or computes. */
export type Term =
  | { readonly is: 'path'; readonly keys: readonly string[] }
  | { readonly is: 'root'; readonly name: string }
  | { readonly is: 'count'; readonly node: string; readonly conv?: string }
  | { readonly is: 'sum'; readonly node: string; readonly name: string; readonly conv?: string }
  | {
      readonly is: 'other'
      readonly conv: Expression
      readonly ref: Expression
      readonly key: string
    }
  | { readonly is: 'variable'; readonly name: string; readonly key: string }
  | {
      readonly is: 'math'
      readonly left: Term
      readonly sign: string
      readonly right: Term | number
    }
  | { readonly is: 'random'; readonly max: number }
  | { readonly is: 'unixtime' }
  | {
      readonly is: 'digest'
      readonly name: 'md5_hex' | 'sha1_hex' | 'sha256_hex'
      readonly of: Expression
    }
  | { readonly is: 'base64'; readonly of: Expression }
  | { readonly is: 'to'; readonly type: ValueType; readonly of: Term }
  | { readonly is: 'map'; readonly add: number; readonly of: Term }
  | { readonly is: 'filter'; readonly more: number; readonly of: Term }

/** Texts and terms: of one term alone it is its value, of more a text. */
export type Expression = readonly (string | Term)[]

export interface Assignment {
  readonly key: Expression
  readonly value: Expression
  readonly type: ValueType | undefined
}

export interface Condition {
  readonly param: Term
  readonly fun: 'eq' | 'not_eq' | 'less' | 'more' | 'less_or_eq' | 'more_or_eq' | 'regexp'
  readonly cast: ValueType
  readonly constant: Expression
}

type Err = { readonly err: string | undefined }

export type Step =
  | { readonly does: 'go'; readonly to: string }
  | { readonly does: 'go_if_const'; readonly conditions: readonly Condition[]; readonly to: string }
  | ({ readonly does: 'set_param'; readonly set: readonly Assignment[] } & Err)
  | ({ readonly does: 'api_callback' } & Err)
  | ({
      readonly does: 'api_copy'
      readonly mode: 'create' | 'modify'
      readonly conv: Expression
      readonly ref: Expression | undefined
      readonly set: readonly Assignment[]
      readonly sends_all: boolean
      readonly is_sync: boolean
    } & Err)
  | ({
      readonly does: 'api_rpc'
      readonly conv: Expression
      readonly set: readonly Assignment[]
      readonly sends_all: boolean
    } & Err)
  | ({
      readonly does: 'api_rpc_reply'
      readonly set: readonly Assignment[]
      readonly throws: boolean
      readonly reason: Expression
    } & Err)
  | ({ readonly does: 'api_queue'; readonly set: readonly Assignment[] } & Err)
  | ({
      readonly does: 'api_get_task'
      readonly conv: Expression
      readonly node: Expression
      readonly newest: boolean
    } & Err)
  | ({
      readonly does: 'api_sum'
      readonly add: readonly { name: string; value: Expression }[]
    } & Err)
  | ({ readonly does: 'api_code'; readonly src: number } & Err)
  | ({
      readonly does: 'api'
      /** The keys that are set from the body, where the response is mapped. */
      readonly response: Readonly<Record<string, string>> | undefined
      readonly attempts_max: number
    } & Err)
  | ({ readonly does: HandledType } & Err)

export const handled_types = ['git_call', 'db_call', 'api_form', 'api_git'] as const
export type HandledType = (typeof handled_types)[number]
export type Does = Step['does']

/** So many seconds after it came to rest, or at a Unix second. */
export interface TimeSemaphor {
  readonly value: number | Term
  readonly to: string
}

export interface CountSemaphor {
  readonly value: number
  readonly to: string
}

export interface PlanNode {
  readonly id: string
  readonly kind: 'logic' | 'start' | 'end' | 'escalation'
  readonly title: string
  readonly steps: readonly Step[]
  readonly timers: readonly TimeSemaphor[]
  readonly counts: readonly CountSemaphor[]
  readonly save: boolean
}

export interface Plan {
  readonly kind: 'process' | 'state'
  /** Input parameters with their types. */
  readonly params: readonly {
    readonly name: string
    readonly type: ValueType
    readonly is_required: boolean
  }[]
  readonly nodes: ReadonlyMap<string, PlanNode>
}

/**
 * What the code of an `api_code` does to the data: its source, and the same for the model. Each
 * names `__root`, so that it is given whose data it has.
 */
export const codes: readonly { readonly src: string; run(data: Record<string, Json>): void }[] = [
  { src: 'data.c = 1 // __root', run: (data) => set(data, 'c', 1) },
  {
    src: 'delete data.a; data.d = "code" // __root',
    run(data) {
      delete data.a
      data.d = 'code'
    },
  },
  {
    src: 'data.n = (Number(data.n) || 0) + 1 // __root',
    run: (data) => set(data, 'n', (Number(data.n) || 0) + 1),
  },
  {
    src: 'data.list = [data.b === undefined ? null : data.b] // __root',
    run: (data) => set(data, 'list', [data.b ?? null]),
  },
  { src: '1 // __root', run: () => {} },
]

function set(data: Record<string, Json>, key: string, value: Json): void {
  data[key] = value
}

const texts = new WeakMap<Plan, string>()

/** The definition as text, made once: it is given to one process only. */
export function definitionText(conv_id: string, plan: Plan): string {
  const known = texts.get(plan) ?? JSON.stringify(definitionOf(conv_id, plan))
  texts.set(plan, known)
  return known
}

const obj_types = { logic: 0, start: 1, end: 2, escalation: 3 } as const

/** The definition of a plan in the public format. */
function definitionOf(conv_id: string, { kind, params, nodes }: Plan): object {
  return {
    obj_type: 1,
    obj_id: conv_id,
    title: `Process ${conv_id}`,
    conv_type: kind,
    params: params.map(({ name, type, is_required }) => ({
      ...{ name, type, regex: '', regex_error_text: '' },
      flags: is_required ? ['required', 'input'] : ['input'],
    })),
    scheme: {
      nodes: [...nodes.values()].map(({ id, kind, title, steps, timers, counts, save }) => ({
        ...{ id, obj_type: obj_types[kind], title },
        condition: {
          logics: steps.map(logicOf),
          semaphors: [
            ...timers.map(({ value, to }) => ({
              ...{ type: 'time', dimension: 'sec', to_node_id: to },
              value: typeof value === 'number' ? value : termText(value),
            })),
            ...counts.map(({ value, to }) => ({ type: 'count', value, esc_node_id: to })),
          ],
        },
        options: save ? '{"save_task":true}' : null,
      })),
    },
  }
}

function logicOf(step: Step): object {
  const type = step.does
  if (step.does === 'go') return { type, to_node_id: step.to }
  if (step.does === 'go_if_const') {
    const conditions = step.conditions.map(({ param, fun, cast, constant }) => ({
      ...{ param: paramText(param), fun, cast, const: textOf(constant) },
    }))
    return { type, to_node_id: step.to, conditions }
  }
  return { type, ...membersOf(step), ...(step.err === undefined ? {} : { err_node_id: step.err }) }
}

function membersOf(step: Exclude<Step, { does: 'go' | 'go_if_const' }>): object {
  switch (step.does) {
    case 'set_param':
      return listed('extra', step.set)
    case 'api_copy': {
      const { mode, ref, is_sync, sends_all } = step
      const of_ref = ref === undefined ? {} : { ref: textOf(ref) }
      const target = { conv_id: textOf(step.conv), ...of_ref }
      return { mode, ...target, is_sync, send_parent_data: sends_all, ...listed('data', step.set) }
    }
    case 'api_rpc': {
      const group = step.sends_all ? { group: 'all' } : {}
      return { conv_id: textOf(step.conv), ...group, ...listed('extra', step.set) }
    }
    case 'api_rpc_reply': {
      const { throws: throw_exception, reason } = step
      const how = { mode: 'key_value', throw_exception, exception_reason: textOf(reason) }
      return { ...how, ...listed('res_data', step.set) }
    }
    case 'api_queue':
      return listed('data', step.set)
    case 'api_get_task': {
      const order_by = step.newest ? 'DESC' : 'ASC'
      return { conv_id: textOf(step.conv), node_id: textOf(step.node), order_by }
    }
    case 'api_sum':
      return {
        extra: step.add.map(({ name, value }, at) => ({ id: `${at}`, name, value: textOf(value) })),
      }
    case 'api_code':
      return { lang: 'js', src: codes[step.src]?.src }
    case 'api': {
      const retry = { attempts_max: step.attempts_max, backoff_ms: 400 }
      const paths = Object.entries(step.response ?? {}).map(([key, name]) => [
        key,
        `{{body.${name}}}`,
      ])
      const mapped = { customize_response: true, response: Object.fromEntries(paths) }
      const of_response = step.response === undefined ? {} : mapped
      return { url: 'http://example.com/', method: 'POST', retry, ...of_response }
    }
    default:
      return {}
  }
}

function listed(name: string, set: readonly Assignment[]): object {
  const values = set.map(({ key, value }) => [textOf(key), textOf(value)])
  const types = set.flatMap(({ key, type }) => (type === undefined ? [] : [[textOf(key), type]]))
  return { [name]: Object.fromEntries(values), [`${name}_type`]: Object.fromEntries(types) }
}

export function textOf(expression: Expression): string {
  return expression.map((part) => (typeof part === 'string' ? part : termText(part))).join('')
}

/** A name without braces means one member, and so does the same name in braces. */
function paramText(term: Term): string {
  return term.is === 'path' && term.keys.length === 1 ? (term.keys[0] as string) : termText(term)
}

export function termText(term: Term): string {
  switch (term.is) {
    case 'path':
      return `{{${pathText(term.keys)}}}`
    case 'root':
      return `{{root.${term.name}}}`
    case 'count':
      return `{{${ofConv(term.conv)}node[${term.node}].count}}`
    case 'sum':
      return `{{${ofConv(term.conv)}node[${term.node}].${term.name}}}`
    case 'other': {
      const path = `conv[${textOf(term.conv)}].ref[${textOf(term.ref)}]`
      return `{{${path}.${term.key}}}`
    }
    case 'variable':
      return `{{env_var[@${term.name}].${term.key}}}`
    case 'math': {
      const right = typeof term.right === 'number' ? term.right : termText(term.right)
      return `$.math(${termText(term.left)}${term.sign}${right})`
    }
    case 'random':
      return `$.random(${term.max})`
    case 'unixtime':
      return '$.unixtime()'
    case 'digest':
      return `$.${term.name}(${textOf(term.of)})`
    case 'base64':
      return `$.base64_encode(${textOf(term.of)})`
    case 'to':
      return `$.to_${term.type}(${termText(term.of)})`
    case 'map':
      return `$.map(fun(X) -> X + ${term.add} end, ${termText(term.of)})`
    case 'filter':
      return `$.filter(fun(X) when X > ${term.more} -> true; (_) -> false end, ${termText(term.of)})`
  }
}

const ofConv = (conv: string | undefined): string => (conv === undefined ? '' : `conv[${conv}].`)

export function pathText(keys: readonly string[]): string {
  return keys
    .map((key, at) => (/^[0-9]+$/.test(key) ? `[${key}]` : at === 0 ? key : `.${key}`))
    .join('')
}
