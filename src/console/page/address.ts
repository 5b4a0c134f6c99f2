/**
 * What of a view is in its address, so that a shared link, a reload and the way back show the same:
 * ids, a status, times and the order; never a ref or data. Times are in milliseconds since 1970, as
 * readers in other time zones get the same link. Needs no document.
 */

const ids = ['conv_id', 'node_id', 'status'] as const
const times = [
  'created_since',
  'created_until',
  'changed_since',
  'changed_until',
  'ended_since',
  'ended_until',
  'due_before',
] as const

type Given = Readonly<Record<string, unknown>>

/** Empty, or with its question mark. */
export function queryOf(what: unknown): string {
  if (typeof what !== 'object' || what === null) return ''
  const given = what as Given
  const query = new URLSearchParams()
  for (const name of ids) {
    const { [name]: value } = given
    if (typeof value === 'string' && value !== '') query.set(name, value)
  }
  for (const name of times) {
    const ms = new Date(String(given[name] ?? '')).getTime()
    if (!Number.isNaN(ms)) query.set(name, String(ms))
  }
  if (given.newest_first === false) query.set('order', 'oldest')
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** Null where the address has none of it. */
export function givenOf(search: string): Given | null {
  const query = new URLSearchParams(search)
  const given: Record<string, unknown> = {}
  for (const name of ids) {
    const value = query.get(name)
    if (value) given[name] = value
  }
  for (const name of times) {
    const text = localText(Number(query.get(name) ?? Number.NaN))
    if (text !== undefined) given[name] = text
  }
  if (query.get('order') === 'oldest') given.newest_first = false
  return Object.keys(given).length === 0 ? null : given
}

/** As an input of a date and a time has it, in the time zone of the reader. */
function localText(ms: number): string | undefined {
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) return undefined
  const shifted = new Date(ms - date.getTimezoneOffset() * 60_000)
  return shifted.toISOString().replace(/(:00)?\.\d+Z$/, '')
}
