/**
 * A search as a form of texts, which is kept with the place, and as the filter that it means.
 * Values of data are sent as typed, so long numbers keep their digits.
 */
import type { SentFilter } from '../../../task-operations/searches.ts'
import { exactText, parseExact } from '../task/exact-json.ts'

export const comparisons = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'exists', 'missing'] as const
export type Comparison = (typeof comparisons)[number]

export interface Condition {
  readonly path: string
  readonly comparison: Comparison
  readonly value: string
}

/** Times are of a `datetime-local` input, in the reader's time zone; empty texts say nothing. */
export interface Search {
  readonly conv_id: string
  readonly node_id: string
  readonly status: string
  readonly name: string
  readonly created_since: string
  readonly created_until: string
  readonly changed_since: string
  readonly changed_until: string
  readonly ended_since: string
  readonly ended_until: string
  readonly due_before: string
  readonly where: readonly Condition[]
  readonly newest_first: boolean
}

export const empty_search: Search = {
  conv_id: '',
  node_id: '',
  status: 'live',
  name: '',
  created_since: '',
  created_until: '',
  changed_since: '',
  changed_until: '',
  ended_since: '',
  ended_until: '',
  due_before: '',
  where: [],
  newest_first: true,
}

/** What was kept with a place, or given by a link, where it is of this shape. */
export function searchOf(kept: unknown): Search {
  if (typeof kept !== 'object' || kept === null) return empty_search
  const members = Object.entries(kept).filter(
    ([name, value]) =>
      name !== 'where' && typeof value === typeof empty_search[name as keyof Search],
  )
  const { where } = kept as { where?: unknown }
  return {
    ...empty_search,
    ...Object.fromEntries(members),
    where: Array.isArray(where) ? where.filter(isCondition) : [],
  }
}

function isCondition(value: unknown): value is Condition {
  const { path, comparison, value: wanted } = (value ?? {}) as Partial<Condition>
  const is_known = comparisons.some((one) => one === comparison)
  return typeof path === 'string' && is_known && typeof wanted === 'string'
}

/** 24 hex digits are always an obj_id: people do not choose such refs. */
export const isObjId = (name: string): boolean => /^[0-9a-f]{24}$/.test(name)

export interface SearchMistake {
  /** The number of the condition, if it is about one. */
  readonly condition?: number
  readonly mistake: string
}

/** The filter; absent where a condition cannot be meant. */
export function filterOf(search: Search): { filter?: SentFilter; mistakes: SearchMistake[] } {
  const { where_text, mistakes } = whereOf(search.where)
  if (mistakes.length > 0) return { mistakes }
  const { conv_id, node_id, status, name } = search
  const times = Object.fromEntries(
    time_members.flatMap(([from, to]) => {
      const ms = new Date(search[from]).getTime()
      return Number.isNaN(ms) ? [] : [[to, ms]]
    }),
  )
  const filter: SentFilter = {
    ...(conv_id === '' ? {} : { conv_id }),
    ...(node_id === '' ? {} : { node_id }),
    status: status as NonNullable<SentFilter['status']>,
    ...(name === '' || isObjId(name) ? {} : { ref_prefix: name }),
    ...times,
    ...(where_text === '' ? {} : { where_text }),
  }
  return { filter, mistakes: [] }
}

const time_members = [
  ['created_since', 'created_since_ms'],
  ['created_until', 'created_until_ms'],
  ['changed_since', 'changed_since_ms'],
  ['changed_until', 'changed_until_ms'],
  ['ended_since', 'ended_since_ms'],
  ['ended_until', 'ended_until_ms'],
  ['due_before', 'due_before_ms'],
] as const

/** Conditions with the same path are one member of the JSON with several comparisons. */
function whereOf(where: readonly Condition[]): { where_text: string; mistakes: SearchMistake[] } {
  const mistakes: SearchMistake[] = []
  const paths = new Map<string, Map<string, string>>()
  where.forEach(({ path, comparison, value }, condition) => {
    if (path.trim() === '') {
      // An empty row is no condition.
      if (value !== '') mistakes.push({ condition, mistake: 'Which member of the data?' })
      return
    }
    const tests = paths.get(path.trim()) ?? new Map<string, string>()
    paths.set(path.trim(), tests)
    const is_there = comparison === 'exists' || comparison === 'missing'
    const name = is_there ? 'exists' : comparison
    if (tests.has(name)) {
      mistakes.push({ condition, mistake: 'This path has this comparison already.' })
    }
    tests.set(name, is_there ? String(comparison === 'exists') : valueText(value))
  })
  const members = [...paths].map(([path, tests]) => {
    const inner = [...tests].map(([name, text]) => `"${name}":${text}`)
    return `${JSON.stringify(path)}:{${inner.join(',')}}`
  })
  return { where_text: members.length === 0 ? '' : `{${members.join(',')}}`, mistakes }
}

/** JSON as typed, such as `100`, `1.10`, `true` or `"100"`; anything else is a text. */
function valueText(typed: string): string {
  const read = parseExact(typed)
  return 'mistake' in read ? JSON.stringify(typed) : exactText(read.value)
}

/** How the typed value is understood. */
export function valueKind(typed: string): string {
  const text = valueText(typed)
  if (text.startsWith('"')) return 'text'
  if (/^[-\d]/.test(text)) return 'number'
  return /^[[{]/.test(text) ? 'JSON' : text
}
