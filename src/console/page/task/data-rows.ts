/**
 * The data of a task as the rows of a tree: the unfolded ones, or those that a search finds with
 * their parents. The list is flat, so the cost is that of the rows shown, however deep the data; a
 * long object or array is shown in parts.
 */
import type { Path } from './data-changes.ts'
import { type Exact, exactText, isExactObject, isList } from './exact-json.ts'

export interface DataRow {
  /** Names the row, also after the data has changed. */
  readonly key: string
  readonly path: Path
  readonly value: Exact
  /** The number of members or items; undefined for scalars. */
  readonly size?: number
  readonly is_open: boolean
  /** A row of its own that says so many more are not shown of the one at `path`. */
  readonly more?: number
}

export interface Shown {
  /** By the key of a row: whether it was unfolded or folded by hand. */
  readonly open: ReadonlyMap<string, boolean>
  /** By the key of a row: how many of its members are shown. */
  readonly lengths: ReadonlyMap<string, number>
  /** Shows the rows with this text in their name or value; case does not matter. */
  readonly search: string
}

/** Members of one object or array that are shown at first, and that each `more` adds. */
export const shown_members = 100
const found_max = 500
/** Unfolded by itself: so deep, where there are not more members than this. */
const open_levels = 3
const open_members = 24

export function rowsOf(data: Exact, { open, lengths, search }: Shown): DataRow[] {
  const rows: DataRow[] = []
  const wanted = search.toLowerCase()
  let found = 0

  function add(value: Exact, path: Path, key: string): void {
    const members = membersOf(value)
    const at = rows.length
    const size = members?.length ?? 0
    const opens = open.get(key) ?? (path.length < open_levels && size <= open_members)
    const is_open = wanted !== '' || path.length === 0 || opens
    if (path.length > 0) rows.push(rowOf(value, path, key, members, is_open && size > 0))
    if (members !== undefined && is_open) addMembers(members, value, path, key)
    keepIfFound(at, path, value)
  }

  function addMembers(members: readonly Member[], value: Exact, path: Path, key: string): void {
    const { length: size } = members
    const length = wanted === '' ? (lengths.get(key) ?? shown_members) : size
    for (const [step, inner] of members.slice(0, length)) {
      if (found >= found_max) break
      add(inner, [...path, step], `${key}/${String(step).replaceAll('/', '~1')}`)
    }
    if (size <= length) return
    rows.push({ ...rowOf(value, path, `${key}/`, members, true), more: size - length })
  }

  /** In a search a row stays that has the text, or has rows under it that have. */
  function keepIfFound(at: number, path: Path, value: Exact): void {
    if (wanted === '' || path.length === 0 || rows.length > at + 1) return
    if (hasText(path.at(-1), value, wanted)) found++
    else rows.length = at
  }

  add(data, [], '')
  return rows
}

function rowOf(
  value: Exact,
  path: Path,
  key: string,
  members: readonly Member[] | undefined,
  is_open: boolean,
): DataRow {
  return { key, path, value, is_open, ...(members === undefined ? {} : { size: members.length }) }
}

type Member = readonly [string | number, Exact]

function membersOf(value: Exact): readonly Member[] | undefined {
  if (isList(value)) return value.map((item, at) => [at, item] as const)
  return isExactObject(value) ? [...value] : undefined
}

function hasText(step: string | number | undefined, value: Exact, wanted: string): boolean {
  if (typeof step === 'string' && step.toLowerCase().includes(wanted)) return true
  if (isList(value) || isExactObject(value)) return false
  const text = typeof value === 'string' ? value : exactText(value)
  return text.toLowerCase().includes(wanted)
}

/** The path as a filter and a template have it: `order.lines[0].price`, `a\.b` for a dot. */
export function pathText(path: Path): string {
  const [only] = path
  if (path.length === 1 && typeof only === 'string' && !/[.[]/.test(only)) return only
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += `${text === '' ? '' : '.'}${step.replaceAll(/[\\.[\]]/g, '\\$&')}`
  }
  return text
}
