/**
 * Where the page is: its path below the base, as a signal, and what it was opened with. Addresses
 * hold ids, statuses and times only (address.ts). Refs and data are kept in the history state,
 * where no log and no header sees them.
 */
import { signal } from '@preact/signals'
import { givenOf, queryOf } from './address.ts'

export const base = document.querySelector<HTMLMetaElement>('meta[name=base]')?.content ?? ''

export type Place =
  | { readonly name: 'overview' }
  | { readonly name: 'process'; readonly conv_id: string }
  | { readonly name: 'tasks' }
  | { readonly name: 'task'; readonly obj_id: string }
  | { readonly name: 'unknown' }

function placeOf(path: string): Place {
  const [name = '', id] = path.slice(base.length).split('/').slice(1).map(decoded)
  if (name === '') return { name: 'overview' }
  if (name === 'tasks' && id === undefined) return { name: 'tasks' }
  if (name === 'process' && id) return { name: 'process', conv_id: id }
  if (name === 'task' && id) return { name: 'task', obj_id: id }
  return { name: 'unknown' }
}

/** Text that is not percent-encoded is kept as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The address of a place as it is opened with `what`, for links that are shared. */
export function addressOf(place: Place, what: unknown): string {
  return pathOf(place) + queryOf(what)
}

export function pathOf(place: Place): string {
  const id = place.name === 'process' ? place.conv_id : place.name === 'task' ? place.obj_id : ''
  if (place.name === 'overview' || place.name === 'unknown') return `${base}/`
  return `${base}/${place.name}${id === '' ? '' : `/${encodeURIComponent(id)}`}`
}

export const place = signal<Place>(placeOf(location.pathname))
/** What the place was opened with, such as a filter; plain data that the browser keeps. */
export const given = signal<unknown>(history.state ?? givenOf(location.search))

export function go(to: Place, what: unknown = null): void {
  history.pushState(what, '', addressOf(to, what))
  given.value = what
  place.value = to
  scrollTo(0, 0)
}

/** Keeps what the place is opened with when the reader comes back to it. */
export function keep(what: unknown): void {
  history.replaceState(what, '', location.pathname + queryOf(what))
  given.value = what
}

addEventListener('popstate', ({ state }) => {
  given.value = state ?? givenOf(location.search)
  place.value = placeOf(location.pathname)
})
