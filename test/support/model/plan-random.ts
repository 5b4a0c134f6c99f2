/**
 * Random plans: a start `s`, up to five nodes, an escalation node, and the ends `e1`, which keeps
 * its tasks, and `e2`. Circles, dead ends and unreachable nodes occur. Tasks that make tasks make
 * them in processes that come later in `convs`, or under one ref, so that they do not multiply.
 */

import {
  type Assignment,
  type Condition,
  codes,
  type Does,
  type Expression,
  handled_types,
  type Json,
  type Plan,
  type PlanNode,
  type Step,
  type Term,
  type TimeSemaphor,
  value_types,
} from './plan.ts'
import type { Random } from './random.ts'

/** Of two bytes each. */
export const convs = ['22', 'ab', 'ж'] as const
export const refs: readonly (string | number)[] = ['r', 7, '7', 'é'.repeat(255)]
export const clock_start_s = 1_700_000_000
export const handled_title = 'Handled'
export const inner_nodes = ['n1', 'n2', 'n3', 'n4', 'n5', 'x'] as const
export const node_ids = ['s', ...inner_nodes, 'e1', 'e2'] as const
const keys = ['a', 'b', 'c', 'd', 'n', 'o', 'list'] as const
const sum_names = ['total', 'other'] as const

/** What the plans of a history may use: `computes` is dear, and counts as moves of an op. */
export interface Profile {
  readonly computes: boolean
}

/** What begins at the start, so that deep things are met: a queue, another process by data. */
const themes = [
  [12, 'none'],
  [3, 'queue'],
  [1, 'target'],
] as const
type Theme = (typeof themes)[number][1]

export function randomPlan(random: Random, conv: string, profile: Profile): Plan {
  const { pick, oneIn, below, list } = random
  const theme = random.weighted(themes)
  const there = inner_nodes.filter((id) => below(10) < 6 || (theme === 'queue' && id === 'n2'))
  const ids = ['s', ...there, 'e1', 'e2']
  const make = newSteps(random, { conv, ids, profile })
  const end = { kind: 'end' as const, steps: [], timers: [], counts: [] }
  const nodes: PlanNode[] = [
    {
      ...{ id: 's', kind: 'start', title: 'Start', timers: [], counts: [], save: false },
      steps: [...make.start(theme), ...list(1, 3, make.step)],
    },
    ...there.map((id): PlanNode => {
      const is_queue = id === 'n2' && (theme === 'queue' || !oneIn(4))
      const steps = is_queue
        ? [make.of('api_queue'), ...list(0, 2, make.step)]
        : list(0, 3, make.step)
      return {
        ...{ id, kind: id === 'x' ? 'escalation' : 'logic', save: false, steps },
        title: id === 'n3' ? handled_title : `Node ${id}`,
        timers: is_queue || oneIn(3) ? [] : list(1, 2, make.timer),
        counts: oneIn(6) ? [{ value: 1 + below(3), to: pick(ids) }] : [],
      }
    }),
    { ...end, id: 'e1', title: 'Kept', save: true },
    { ...end, id: 'e2', title: 'End', save: oneIn(2) },
  ]
  const params = oneIn(10)
    ? [{ name: pick(keys), type: pick(value_types), is_required: oneIn(2) }]
    : []
  return {
    kind: oneIn(5) ? 'state' : 'process',
    params,
    nodes: new Map(nodes.map((node) => [node.id, node])),
  }
}

/** A later version of a plan: some nodes anew, some gone, some back. */
export function changedPlan(random: Random, conv: string, plan: Plan, profile: Profile): Plan {
  const { oneIn } = random
  const fresh = randomPlan(random, conv, profile)
  if (oneIn(3)) return fresh
  const nodes = new Map(
    [...fresh.nodes]
      .filter(([id]) => plan.nodes.has(id) || oneIn(2))
      .map(([id, node]) => {
        const old = plan.nodes.get(id)
        return [id, old !== undefined && !oneIn(3) ? old : node]
      }),
  )
  return { ...plan, nodes: closed(nodes) }
}

/** Steps that lead to a node that is not there lead to the start. */
export function closed(nodes: ReadonlyMap<string, PlanNode>): Map<string, PlanNode> {
  const there = (id: string): string => (nodes.has(id) ? id : 's')
  const closedStep = (step: Step): Step => {
    if (step.does === 'go' || step.does === 'go_if_const') return { ...step, to: there(step.to) }
    return step.err === undefined ? step : { ...step, err: there(step.err) }
  }
  return new Map(
    [...nodes].map(([id, node]) => [
      id,
      {
        ...node,
        steps: node.steps.map(closedStep),
        timers: node.timers.map((one) => ({ ...one, to: there(one.to) })),
        counts: node.counts.map((one) => ({ ...one, to: there(one.to) })),
      },
    ]),
  )
}

function newSteps(
  random: Random,
  { conv, ids, profile }: { conv: string; ids: readonly string[]; profile: Profile },
) {
  const { pick, oneIn, below, list, weighted } = random
  const err = (): string | undefined => (oneIn(5) ? undefined : pick(ids))
  const later = convs.slice(convs.indexOf(conv as (typeof convs)[number]) + 1)
  const path = (...given: string[]): Term => ({ is: 'path', keys: given })

  function term(): Term {
    return weighted<() => Term>([
      [8, () => path(pick(keys))],
      [2, () => path('o', pick(['x', 'y']))],
      [2, () => path('list', `${below(2)}`)],
      [
        2,
        () => ({
          is: 'root',
          name: pick([
            'ref',
            'node_id',
            'prev_node_id',
            'conv_id',
            'task_id',
            'node_name',
            'prev_node_name',
            'status',
            'create_time',
            'change_time',
            'user_id',
            'end_time',
          ]),
        }),
      ],
      [2, () => ({ is: 'count', node: pick(ids), ...(oneIn(2) ? { conv: pick(convs) } : {}) })],
      [
        2,
        () => ({
          is: 'sum',
          node: pick(ids),
          name: pick(sum_names),
          ...(oneIn(2) ? { conv: pick(convs) } : {}),
        }),
      ],
      [
        2,
        () => ({
          is: 'other',
          conv: convTerm(),
          ref: [oneIn(2) ? 'r' : path('a')],
          key: pick(keys),
        }),
      ],
      [1, () => ({ is: 'variable', name: 'v', key: pick(['key', 'n', 'none']) })],
      [
        2,
        () => ({
          is: 'math',
          left: path(pick(keys)),
          sign: pick(['+', '-', '*', '/']),
          right: oneIn(2) ? below(3) : path('n'),
        }),
      ],
      [1, () => ({ is: 'random', max: below(5) })],
      [1, () => ({ is: 'unixtime' })],
      [
        1,
        () => ({
          is: 'to',
          type: pick(value_types.filter((type) => type !== 'boolean')),
          of: path(pick(keys)),
        }),
      ],
      ...(profile.computes ? computing() : []),
    ])()
  }

  function computing(): (readonly [number, () => Term])[] {
    const of: Expression = ['x', path(pick(keys))]
    return [
      [1, () => ({ is: 'digest', name: pick(['md5_hex', 'sha1_hex', 'sha256_hex']), of })],
      [1, () => ({ is: 'base64', of })],
    ]
  }

  function convTerm(): Expression {
    return weighted<Expression>([
      [4, [pick(convs)]],
      [1, ['gone']],
      [2, [path('to')]],
    ])
  }

  function value(): Expression {
    return weighted<() => Expression>([
      [3, () => [pick(['1', '2', 'x', '', 'true', '[1,2]', '{"x":1}'])]],
      [5, () => [term()]],
      // A digit alone would, in a loop, make numbers of more digits than the model keeps.
      [2, () => [pick(['x', '-1']), term()]],
    ])()
  }

  /** An array or an object that is built of parts is read otherwise. */
  function assignment(): Assignment {
    const given = value()
    const types = given.length > 1 ? (['string', 'number', 'boolean'] as const) : value_types
    const key = oneIn(8) ? pick(['o.x', 'o.y', 'a.x']) : pick(keys)
    return { key: [key], value: given, type: oneIn(2) ? undefined : pick(types) }
  }

  /** The keys differ, for an object has one value of each. */
  function set(min: number, max: number): Assignment[] {
    const made = new Map(list(min, max, assignment).map((one) => [String(one.key[0]), one]))
    return [...made.values()]
  }

  function condition(): Condition {
    const cast = pick(value_types)
    const ordered = ['less', 'more', 'less_or_eq', 'more_or_eq'] as const
    const is_ordered = cast === 'string' || cast === 'number'
    const patterns = is_ordered && profile.computes ? (['regexp'] as const) : []
    const fun = pick(['eq', 'not_eq', ...(is_ordered ? ordered : []), ...patterns] as const)
    const constants = {
      ...{ string: ['1', 'x', ''], number: ['0', '1', '2', 'x'], boolean: ['true', 'false'] },
      ...{ array: ['[1,2]', '[]'], object: ['{"x":1}', '{}'] },
    }
    const constant: Expression =
      fun === 'regexp'
        ? [pick(['^[0-9]+$', 'x', '1|2'])]
        : oneIn(4)
          ? [path(pick(keys))]
          : [pick(constants[cast])]
    return { param: oneIn(3) ? term() : path(pick(keys)), fun, cast, constant }
  }

  function of(does: Does): Step {
    switch (does) {
      case 'go':
        return { does, to: pick(ids) }
      case 'go_if_const':
        return { does, conditions: list(0, 2, condition), to: pick(ids) }
      case 'set_param':
        return { does, set: set(1, 3), err: err() }
      case 'api_callback':
        return { does, err: err() }
      case 'api_copy': {
        const mode = pick(['create', 'modify'] as const)
        const how = { sends_all: oneIn(3), is_sync: oneIn(2), set: set(0, 2), err: err() }
        if (mode === 'modify') {
          return {
            does,
            mode,
            conv: convTerm(),
            ref: [pick<string | Term>(['r', '7', path('a')])],
            ...how,
          }
        }
        // Without a ref only in a later process.
        const to: Expression = later.length > 0 && !oneIn(4) ? [pick(later)] : convTerm()
        const is_free = typeof to[0] === 'string' && later.some((one) => one === to[0])
        return {
          does,
          mode,
          conv: to,
          ref: is_free && oneIn(2) ? undefined : [pick(['r', '7'])],
          ...how,
        }
      }
      case 'api_rpc': {
        const to: Expression = later.length > 0 && !oneIn(8) ? [pick(later)] : [pick(['gone', 'ж'])]
        return { does, conv: to, set: set(0, 2), sends_all: oneIn(2), err: err() }
      }
      case 'api_rpc_reply': {
        const reason = oneIn(3) ? [] : ['no: ', path(pick(keys))]
        return { does, set: set(0, 2), throws: oneIn(3), reason, err: err() }
      }
      case 'api_queue':
        return { does, set: set(0, 1), err: err() }
      case 'api_get_task': {
        const node: Expression = oneIn(6) ? [path(pick(keys))] : [oneIn(6) ? pick(ids) : 'n2']
        return { does, conv: oneIn(4) ? convTerm() : [conv], node, newest: oneIn(2), err: err() }
      }
      case 'api_sum':
        return {
          ...{ does, err: err() },
          add: list(1, 2, () => ({ name: pick(sum_names), value: value() })),
        }
      case 'api_code':
        return { does, src: below(codes.length), err: err() }
      case 'api': {
        const response = oneIn(3) ? { [pick(['a', 'c'])]: 'x' } : undefined
        const mapped =
          response && Object.fromEntries(Object.entries(response).map(([key, name]) => [key, name]))
        return { does, response: mapped, attempts_max: 1 + below(3), err: err() }
      }
      default:
        return { does, err: err() }
    }
  }

  function start(theme: Theme): Step[] {
    if (theme === 'none') return []
    if (theme === 'target') {
      const how = { sends_all: false, is_sync: false, set: [], err: pick(ids) }
      return [
        {
          does: 'api_copy',
          mode: pick(['create', 'modify']),
          conv: [path('to')],
          ref: ['r'],
          ...how,
        },
      ]
    }
    const given = { param: path('a'), fun: 'not_eq', cast: 'string', constant: [''] } as const
    const newest = oneIn(3)
    return [
      { does: 'go_if_const', conditions: [given], to: 'n2' },
      { does: 'api_get_task', conv: [conv], node: ['n2'], newest, err: pick(ids) },
    ]
  }

  const kinds: readonly (readonly [number, () => Does])[] = [
    [8, () => 'go'],
    [8, () => 'go_if_const'],
    [8, () => 'set_param'],
    [10, () => 'api_callback'],
    [6, () => 'api_copy'],
    [5, () => 'api_rpc'],
    [6, () => 'api_rpc_reply'],
    [3, () => 'api_queue'],
    [5, () => 'api_get_task'],
    [3, () => 'api_sum'],
    [2, () => 'api_code'],
    [2, () => 'api'],
    [2, () => pick(handled_types)],
  ]

  function timer(): TimeSemaphor {
    const at: number | Term = oneIn(6)
      ? oneIn(3)
        ? { is: 'math', left: { is: 'unixtime' }, sign: pick(['+', '-']), right: below(30) }
        : path('when')
      : pick([0, 1, 5, 60, 0.5])
    return { value: at, to: pick(ids) }
  }
  return { of, start, step: () => of(weighted(kinds)()), timer }
}

/** Data of callers: small, now and then so long that little else fits. */
export function randomData(random: Random): Record<string, Json> {
  const { pick, oneIn, below } = random
  const small = (): Json =>
    pick<Json>([
      0,
      1,
      2,
      '1',
      '2',
      'x',
      '',
      true,
      'true',
      null,
      [1, 2],
      [],
      { x: 1 },
      '{"x":1}',
      '[1,2]',
      'n2',
    ])
  const data: Record<string, Json> = {}
  for (const key of keys) if (oneIn(3)) data[key] = small()
  if (oneIn(4)) data.a = pick(refs)
  if (oneIn(8)) data.when = pick<Json>([-100, 0, 2, 30].map((s) => clock_start_s + s).concat([0]))
  if (oneIn(20)) data.when = pick<Json>(['soon', `${clock_start_s + 5}`])
  if (oneIn(5)) data.to = pick<Json>([...convs, 22, 'gone', ''])
  if (oneIn(12))
    data[pick(['a', 'b'])] = pick([
      'A'.repeat(260),
      'A'.repeat(340),
      'é'.repeat(130),
      'A'.repeat(560),
      'A'.repeat(620),
    ])
  if (oneIn(6)) data.n = below(100)
  return data
}
