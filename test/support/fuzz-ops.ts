/**
 * Ops at random, as texts, and what wire.md says that each must be answered: an independent reading,
 * which shares nothing with the program. The processes are those of `fuzz-harness`; refs are new in each
 * request, so what its tasks are is known without asking.
 */

/** Picks at random what a request is made of. */
export interface Dice {
  /** 0 to below 1. */
  fraction(): number
  pick<Item>(items: readonly Item[]): Item
  /** A whole number of 0 to below `below`. */
  below(below: number): number
  chance(of: number): boolean
}

export function diceOf(fraction: () => number): Dice {
  const below = (below: number): number => Math.floor(fraction() * below)
  return {
    fraction,
    below,
    pick: (items) => items[below(items.length)] as never,
    chance: (of) => fraction() < of,
  }
}

export interface FuzzOp {
  readonly text: string
  readonly expected: ExpectedResult
}

export interface ExpectedResult {
  /** One of these. */
  readonly procs: readonly string[]
  /** The member at fault of a malformed op. */
  readonly key?: string
  /** As echoed: the JSON text of the ref. */
  readonly ref: string
  readonly id: string | undefined
  readonly type: string | undefined
  /** The task, by what it is called here; two of one name are one task. */
  readonly task?: string
  /** An object that is not served, as it is echoed. */
  readonly unknown?: string
}

/** A member of an op: its text, and whether it is well formed. */
interface Member {
  /** Undefined: left out. */
  readonly text: string | undefined
  readonly is_right: boolean
}

const right = (text: string | undefined): Member => ({ text, is_right: true })
const wrong = (text: string | undefined): Member => ({ text, is_right: false })

const wrong_types = ['"reset"', '"Create"', '7', 'null', '[]', '{}', '""', 'true', undefined].map(
  wrong,
)
const wrong_objs = ['"Task"', '"tasks"', 'null', '1', '[]', '{"task":1}', undefined].map(wrong)
const right_convs = [
  '1234',
  '"1234"',
  '"\\u0031234"',
  '1235',
  '"1236"',
  '1237',
  '1239',
  '9999',
  '"é"',
  '-5',
]
const wrong_convs = [
  'null',
  '1.5',
  '1e3',
  'true',
  '{}',
  '[1234]',
  '""',
  '"a\\u0000"',
  `"${'x'.repeat(65)}"`,
  undefined,
].map(wrong)
const wrong_refs = ['""', `"${'x'.repeat(256)}"`, 'true', '{}', '[]', '["a"]'].map(wrong)
const wrong_obj_ids = ['"xyz"', '7', '""', `"${'0'.repeat(25)}"`, '{}', 'false'].map(wrong)
const wrong_data = ['null', '7', '"{}"', '[1]', 'true', undefined].map(wrong)
const wrong_nodes = ['""', '{}', 'true', `"${'x'.repeat(256)}"`].map(wrong)
const wrong_syncs = ['"true"', '1', '{}'].map(wrong)
const unknown_id = '"0123456789abcdef01234567"'

/** Texts of data, each list of one value. */
const values = [
  ['{}', '[]', '{ }', '[\n]'],
  ['{"a":1}', '{"a" : 1}', '{"\\u0061":1}', '{"a":2,"a":1}'],
  ['{"a":1.0}', '\t{"a":1.0 }'],
  ['{"a":"é","__proto__":{"b":[1e400]}}'],
  ['{"a":[null,true,-0,"\\ud83d\\ude00"]}', '{"a": [null , true,-0,"😀"]}'],
] as const
const large = `{"a":"${'x'.repeat(4_000)}"}`

/** What the tasks of one request are. */
export interface TasksSoFar {
  /** Process and ref of those that live, with the number of their data. */
  readonly live: Map<string, { readonly task: string; readonly value: number }>
  readonly ended: Map<string, string>
  made: number
}

export const noTasks = (): TasksSoFar => ({ live: new Map(), ended: new Map(), made: 0 })

/** An op of a request whose refs begin so. */
export function opAtRandom(dice: Dice, refs: string, tasks: TasksSoFar): FuzzOp {
  const type = dice.pick(['create', 'create', 'modify', 'show'] as const)
  const mostly = (texts: readonly (string | undefined)[], wrongs: readonly Member[]): Member =>
    dice.chance(0.04) ? dice.pick(wrongs) : right(dice.pick(texts))
  const value = dice.chance(0.03) ? undefined : dice.below(values.length)
  const data = dice.chance(0.04)
    ? dice.pick(wrong_data)
    : right(value === undefined ? large : dice.pick(values[value] as readonly string[]))
  const conv = dice.chance(0.6) ? right('1234') : mostly(right_convs, wrong_convs)
  const name = `${refs}${dice.below(3)}`
  const ref = mostly(
    [`"${name}"`, `"${name}"`, 'null', undefined, `${Number(name.replace(/\D/g, ''))}.50`],
    wrong_refs,
  )
  const by_id = type !== 'create' && dice.chance(0.1)
  const obj_id = by_id ? mostly([unknown_id, 'null'], wrong_obj_ids) : right(undefined)
  const node_id = mostly([undefined, undefined, 'null', '"wait"', '"end"'], wrong_nodes)
  const is_sync = mostly([undefined, undefined, 'null', 'true', 'false'], wrong_syncs)
  const id = dice.pick([undefined, undefined, '"é\\n"', '5', '1.10', 'null', '{}'])
  const given = { type: mostly([`"${type}"`], wrong_types), obj: mostly(['"task"'], wrong_objs) }
  const all = { ...given, conv_id: conv, ref, obj_id, data, node_id, is_sync }
  const members = Object.entries(all).filter(
    ([key]) =>
      !(key === 'data' && type === 'show') &&
      (type === 'modify' || !/^(node_id|is_sync)$/.test(key)),
  )
  const texts = [...members.map(([key, { text }]) => [key, text]), ['id', id]]
  if (dice.chance(0.1)) texts.push(['action', '{"deep":[[[1]]]}'])
  if (dice.chance(0.3)) texts.sort(() => dice.fraction() - 0.5)
  const text = `{${texts.flatMap(([key, text]) => (text === undefined ? [] : [`${spelt(dice, String(key))}:${text}`])).join(dice.pick([',', ' , ', ',\n\t']))}}`
  const found = {
    ref: ref.is_right ? (ref.text ?? 'null') : 'null',
    id: id === 'null' || id === '{}' ? undefined : id,
    type: given.type.is_right ? type : undefined,
  }
  const unknown = given.obj.is_right ? undefined : given.obj.text
  if (unknown?.startsWith('"')) return { text, expected: { ...found, procs: ['error'], unknown } }
  const key = keyAtFault(type, all)
  if (key !== undefined) return { text, expected: { ...found, procs: ['error'], key } }
  const answer = answered({ type, all, value, tasks })
  return { text, expected: { ...found, ...answer } }
}

function spelt(dice: Dice, key: string): string {
  return dice.chance(0.02) ? `"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}"` : `"${key}"`
}

type Given = Readonly<
  Record<'type' | 'obj' | 'conv_id' | 'ref' | 'obj_id' | 'data' | 'node_id' | 'is_sync', Member>
>

/** wire 1.3: the first at fault of type, obj, conv_id, ref, obj_id, data, and for a modify more. */
function keyAtFault(type: string, given: Given): string | undefined {
  const isMissing = ({ text }: Member): boolean => text === undefined || text === 'null'
  for (const key of ['type', 'obj', 'conv_id', 'ref'] as const) if (!given[key].is_right) return key
  if (type !== 'create') {
    if (!given.obj_id.is_right) return 'obj_id'
    if (isMissing(given.ref) && isMissing(given.obj_id)) return 'ref'
  }
  if (type === 'show') return undefined
  if (!given.data.is_right) return 'data'
  if (type !== 'modify') return undefined
  return (['node_id', 'is_sync'] as const).find((key) => !given[key].is_right)
}

interface Asked {
  readonly type: 'create' | 'modify' | 'show'
  readonly all: Given
  /** Undefined: over the limit. */
  readonly value: number | undefined
  readonly tasks: TasksSoFar
}

/** wire 1.2 and 1.4, in the order of the table. */
function answered({ type, all, value, tasks }: Asked): { procs: string[]; task?: string } {
  const conv = String(all.conv_id.text).replace(/"/g, '').replace('\\u0031', '1')
  const only = (proc: string, task?: string) =>
    task === undefined ? { procs: [proc] } : { procs: [proc], task }
  const shared = ['1234', '1235', '1239'].includes(conv) || (conv === '1237' && type === 'show')
  if (!shared) return only('access_denied')
  const ref =
    all.ref.text === undefined || all.ref.text === 'null'
      ? undefined
      : all.ref.text.replace(/"/g, '')
  const at = `${conv} ${ref}`
  const live = ref === undefined ? undefined : tasks.live.get(at)
  const ended = ref === undefined ? undefined : tasks.ended.get(at)
  const is_paused = conv === '1235'
  if (type === 'create') {
    const is_large = value === undefined
    if (live !== undefined && live.value === value) return only('ok', live.task)
    if (is_paused) return only('conveyor_is_not_active')
    if (is_large) return only('task_size_overflow_limit')
    if (live !== undefined) return only('not_unical_ref', live.task)
    const task = `task ${++tasks.made}`
    if (ref !== undefined) {
      if (conv === '1239') tasks.ended.set(at, task)
      else tasks.live.set(at, { task, value: value as number })
    }
    return only('ok', task)
  }
  const is_by_id = all.obj_id.text === unknown_id
  if (type === 'show') {
    if (is_by_id) return only('not_found_task')
    const task = live?.task ?? ended
    if (task === undefined)
      return {
        procs: is_paused ? ['not_found_task', 'conveyor_is_not_active'] : ['not_found_task'],
      }
    return only('ok', task)
  }
  if (is_paused) return only('conveyor_is_not_active')
  if (is_by_id || live === undefined) return only('not_found_task')
  if (all.node_id.text === '"end"') return only('no_api_callback_in_node_with_task')
  if (value === undefined) return only('task_size_overflow_limit')
  // It waited, so it goes on to the end, which keeps it.
  tasks.live.delete(at)
  tasks.ended.set(at, live.task)
  return only('ok', live.task)
}
