/**
 * Random processes of a restricted shape, as plans. The engine gets a definition made of the plan,
 * and the model runs the plan itself, so neither depends on the other.
 *
 * A plan has a start `s`, up to four nodes `n1` to `n4`, and two ends; `e1` keeps its tasks, `e2`
 * keeps them where the plan says so. Circles, dead ends and unreachable nodes all occur.
 */
import fc from 'fast-check'

export type PlanStep =
  | { readonly does: 'go'; readonly to: string }
  | { readonly does: 'if'; readonly condition: PlanCondition; readonly to: string }
  | { readonly does: 'set'; readonly setting: PlanSetting; readonly err: string | undefined }
  | { readonly does: 'wait' }

export interface PlanCondition {
  readonly key: string
  readonly fun: 'eq' | 'not_eq' | 'less'
  readonly cast: 'number' | 'string'
  readonly value: string
}

/** Sets `key` to a text, or to what stands under the key `from`. */
export interface PlanSetting {
  readonly key: string
  readonly text: string
  readonly from: string | undefined
  readonly type: 'number' | undefined
}

/** Rings after so many seconds, or at the Unix second that stands in the data under `when`. */
export interface PlanTimer {
  readonly s: number | 'when'
  readonly to: string
}

export interface PlanNode {
  readonly id: string
  readonly kind: 'start' | 'logic' | 'end'
  readonly steps: readonly PlanStep[]
  readonly timers: readonly PlanTimer[]
  readonly save: boolean
}

export type Plan = ReadonlyMap<string, PlanNode>

const obj_types = { logic: 0, start: 1, end: 2 } as const

/** The definition of a plan in the public format. */
export function definitionOf(conv_id: string, plan: Plan): object {
  const nodes = [...plan.values()].map(({ id, kind, steps, timers, save }) => ({
    id,
    obj_type: obj_types[kind],
    title: `Node ${id}`,
    condition: {
      logics: steps.map(logicOf),
      semaphors: timers.map(({ s, to }) => ({
        type: 'time',
        value: s === 'when' ? '{{when}}' : s,
        dimension: 'sec',
        to_node_id: to,
      })),
    },
    options: save ? '{"save_task":true}' : null,
  }))
  return { obj_type: 1, obj_id: conv_id, title: `Process ${conv_id}`, scheme: { nodes } }
}

function logicOf(step: PlanStep): object {
  switch (step.does) {
    case 'go':
      return { type: 'go', to_node_id: step.to }
    case 'if': {
      const { key: param, fun, cast, value } = step.condition
      const conditions = [{ param, fun, cast, const: value }]
      return { type: 'go_if_const', to_node_id: step.to, conditions }
    }
    case 'set': {
      const { key, text, from, type } = step.setting
      return {
        type: 'set_param',
        extra: { [key]: from === undefined ? text : `{{${from}}}` },
        extra_type: type === undefined ? {} : { [key]: type },
        ...(step.err === undefined ? {} : { err_node_id: step.err }),
      }
    }
    case 'wait':
      return { type: 'api_callback', is_sync: false }
  }
}

const key = fc.constantFrom('a', 'b', 'c', 'd')
/** A node by its number; what it means depends on the nodes that there are. */
const target = fc.nat({ max: 20 })
const wait = fc.record({ does: fc.constant('wait' as const) })
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ does: fc.constant('go' as const), to: target }) },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('if' as const),
      condition: fc.record({
        key,
        fun: fc.constantFrom('eq' as const, 'not_eq' as const, 'less' as const),
        cast: fc.constantFrom('number' as const, 'string' as const),
        value: fc.constantFrom('0', '1', '2'),
      }),
      to: target,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant('set' as const),
      setting: fc.record({
        key,
        text: fc.constantFrom('1', '2', 'x'),
        // The large values of callers stand in `a` and `b`, and stay there.
        from: fc.constantFrom('c', 'd', undefined),
        type: fc.constantFrom('number' as const, undefined),
      }),
      err: fc.option(target, { nil: undefined }),
    }),
  },
  { weight: 4, arbitrary: wait },
)
const timer = fc.record({
  s: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom<number | 'when'>(0, 1, 5, 60) },
    { weight: 1, arbitrary: fc.constant('when' as const) },
  ),
  to: target,
})
const inner = fc.record({
  there: fc.boolean(),
  steps: fc.oneof(
    { weight: 4, arbitrary: fc.array(step, { maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(wait, { minLength: 2, maxLength: 2 }) },
  ),
  timers: fc.oneof(
    { weight: 1, arbitrary: fc.array(timer, { maxLength: 0 }) },
    { weight: 2, arbitrary: fc.array(timer, { minLength: 1, maxLength: 2 }) },
  ),
})

export const planArbitrary: fc.Arbitrary<Plan> = fc
  .record({
    start: fc.array(step, { minLength: 1, maxLength: 3 }),
    inner: fc.array(inner, { minLength: 4, maxLength: 4 }),
    save: fc.boolean(),
  })
  .map(({ start, inner: all, save }) => {
    const there = all.map((node, at) => ({ ...node, id: `n${at + 1}` })).filter((n) => n.there)
    const ids = [...there.map(({ id }) => id), 'e1', 'e2', 's']
    const id = (n: number): string => ids[n % ids.length] as string
    const steps = (given: typeof start): PlanStep[] =>
      given.map((one) => {
        if (one.does === 'wait') return one
        if (one.does !== 'set') return { ...one, to: id(one.to) }
        return { ...one, err: one.err === undefined ? undefined : id(one.err) }
      })
    const end = { kind: 'end' as const, steps: [], timers: [] }
    const nodes: PlanNode[] = [
      { id: 's', kind: 'start', steps: steps(start), timers: [], save: false },
      ...there.map((node): PlanNode => {
        const timers = node.timers.map(({ s, to }) => ({ s, to: id(to) }))
        return { id: node.id, kind: 'logic', steps: steps(node.steps), timers, save: false }
      }),
      { ...end, id: 'e1', save: true },
      { ...end, id: 'e2', save },
    ]
    return new Map(nodes.map((node) => [node.id, node]))
  })
