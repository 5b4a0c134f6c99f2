/**
 * Random steps for the model test, as plain data over few processes, refs and tasks: so clashes,
 * repeats and misses occur, and a failing history shrinks well.
 */
import fc from 'fast-check'
import { type Plan, planArbitrary } from './model-graph.ts'
import type { ModelData } from './model-task.ts'

/**
 * Tasks are meant by ref, by obj_id, or by both. An even `nth` is one of the live tasks, and brings
 * its process along; an odd one is any that was ever made.
 */
export interface StepTarget {
  readonly ref: string | number | undefined
  readonly nth: number | undefined
}

export type StepOp =
  | {
      readonly op: 'create'
      readonly conv: string | number
      readonly ref: string | number | null | undefined
      readonly data: ModelData
    }
  | {
      readonly op: 'modify'
      readonly conv: string | number
      readonly target: StepTarget
      readonly data: ModelData
      readonly is_sync: boolean | undefined
      readonly node_id: string | undefined
    }
  | { readonly op: 'show'; readonly conv: string | number; readonly target: StepTarget }
  | { readonly op: 'malformed' }

export interface StepList {
  readonly ops: readonly StepOp[]
  readonly by_user: boolean
}

export type Step =
  | { readonly step: 'apply'; readonly lists: readonly StepList[] }
  | { readonly step: 'cancel'; readonly conv: string; readonly target: StepTarget }
  | {
      readonly step: 'retry'
      readonly conv: string
      readonly target: StepTarget
      readonly node: string | undefined
    }
  | { readonly step: 'pause' | 'resume' | 'remove'; readonly conv: string }
  | { readonly step: 'share'; readonly conv: string; readonly can: readonly Can[] | undefined }
  | {
      readonly step: 'deploy'
      readonly conv: string
      readonly plan: Plan
      readonly moves: readonly (readonly [string, string])[]
    }
  | { readonly step: 'advance'; readonly ms: number }
  | { readonly step: 'back'; readonly ms: number }
  | { readonly step: 'reopen'; readonly away_ms: number }

type Can = 'create' | 'modify' | 'show'

export const clock_start_s = 1_700_000_000
export const convs = ['22', 'a', 'ж'] as const
export const only_user = '13000'
const nodes = ['s', 'n1', 'n2', 'n3', 'n4', 'e1', 'e2'] as const

/** One process gets most of the work, so that steps meet. */
const conv = fc.constantFrom(...convs, '22', '22', '22')
const anyConv = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom<string | number>(...convs, 22, '22', 22) },
  { weight: 1, arbitrary: fc.constant('nowhere') },
)
const ref = fc.constantFrom<string | number>('r', 7, '7', 'é'.repeat(255))
const small = fc.constantFrom<string | number>(0, 1, 2, '1', '2', 'x')
/**
 * Of the long values one or two fit into a task, some beside the fields of an error; one never
 * does.
 */
const long = [...[260, 340, 545, 600].map((chars) => 'A'.repeat(chars)), 'é'.repeat(130)]
const large = fc.oneof(
  { weight: 10, arbitrary: small },
  { weight: 2, arbitrary: fc.constantFrom(...long) },
)
const when = fc.constantFrom<string | number>(
  ...[-100, 0, 2, 30].map((s) => clock_start_s + s),
  `${clock_start_s + 5}`,
  'soon',
)
const data: fc.Arbitrary<ModelData> = fc.record(
  { a: large, b: large, c: small, d: small, when },
  { requiredKeys: [], noNullPrototype: true },
)
const target: fc.Arbitrary<StepTarget> = fc.oneof(
  { weight: 5, arbitrary: ref.map((one) => ({ ref: one, nth: undefined })) },
  { weight: 5, arbitrary: fc.nat({ max: 40 }).map((nth) => ({ ref: undefined, nth })) },
  { weight: 1, arbitrary: fc.record({ ref, nth: fc.nat({ max: 40 }) }) },
)
const op: fc.Arbitrary<StepOp> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      op: fc.constant('create' as const),
      conv: anyConv,
      ref: fc.oneof(ref, fc.constantFrom(null, undefined)),
      data: fc.oneof(fc.constant({}), data),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      op: fc.constant('modify' as const),
      conv: anyConv,
      target,
      data,
      is_sync: fc.constantFrom(undefined, undefined, false, true),
      node_id: fc.oneof(
        { weight: 4, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom(...nodes) },
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('show' as const), conv: anyConv, target }),
  },
  { weight: 1, arbitrary: fc.constant({ op: 'malformed' as const }) },
)
const list: fc.Arbitrary<StepList> = fc.record({
  ops: fc.array(op, { minLength: 1, maxLength: 6 }),
  by_user: fc.nat({ max: 3 }).map((n) => n === 0),
})
const moveAll = (to: string) => nodes.map((from) => [from, to] as const)
const ms = fc.constantFrom(0, 1, 999, 1_000, 4_999, 5_000, 60_000, 200_000)

export const planned = planArbitrary
export const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      step: fc.constant('apply' as const),
      lists: fc.array(list, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ step: fc.constant('cancel' as const), conv, target }) },
  {
    weight: 4,
    arbitrary: fc.record({
      step: fc.constant('retry' as const),
      conv,
      target,
      node: fc.constantFrom(undefined, undefined, ...nodes, 'gone'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ step: fc.constantFrom('pause' as const, 'resume' as const), conv }),
  },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('remove' as const), conv }) },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('share' as const),
      conv,
      can: fc.oneof(
        fc.constantFrom<Can[] | undefined>(undefined, ['create', 'modify', 'show']),
        fc.subarray<Can>(['create', 'modify', 'show'], { minLength: 1 }),
      ),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      step: fc.constant('deploy' as const),
      conv,
      plan: planArbitrary,
      moves: fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom('s', 'n1', 'e1').map(moveAll) },
        {
          weight: 1,
          arbitrary: fc.array(fc.tuple(fc.constantFrom(...nodes), fc.constantFrom(...nodes)), {
            maxLength: 5,
          }),
        },
      ),
    }),
  },
  { weight: 10, arbitrary: fc.record({ step: fc.constant('advance' as const), ms }) },
  {
    weight: 2,
    arbitrary: fc.record({ step: fc.constant('back' as const), ms: fc.constantFrom(1, 3_000) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ step: fc.constant('reopen' as const), away_ms: ms }),
  },
)
