/**
 * What a reader has changed in the data of a task, as the members that a modify sends: it replaces
 * members of the data's top level and leaves the others, so a member is sent whole or not at all.
 * A hidden value, shown as `***`, is never sent: that would overwrite the real value.
 */
import { type Exact, type ExactObject, exactText, isExactObject, isList } from './exact-json.ts'

export type Step = string | number
export type Path = readonly Step[]

export const mask = '***'

export interface Changes {
  /** What is sent: a JSON object. */
  readonly text: string
  /** The members of the top level in it. */
  readonly names: readonly string[]
  /** Sentences that say why it cannot be sent as it is. */
  readonly problems: readonly string[]
  /** Members that changed in the task meanwhile, and which this would overwrite. */
  readonly overwrites: readonly string[]
}

/** `now` is the data as it is at present, `before` as it was when the reader began. */
export function changesOf(before: ExactObject, after: ExactObject, now = before): Changes {
  const changed = [...after].filter(([name, value]) => !isSame(before.get(name), value))
  const problems: string[] = []
  const removed = [...before.keys()].filter((name) => !after.has(name))
  if (removed.length > 0) {
    problems.push(
      `${listed(removed)} cannot be removed: a modify adds and replaces. Write null in its place.`,
    )
  }
  for (const [name, value] of changed) {
    if (!holdsMask(name, value) || !holdsMask(name, before.get(name))) continue
    problems.push(
      `${listed([name])} has a hidden value, ${mask}, which would be overwritten with just that. ` +
        'Write what it is to be, or leave the member as it is.',
    )
  }
  const names = changed.map(([name]) => name)
  return {
    text: exactText(new Map(changed)),
    names,
    problems,
    overwrites: names.filter((name) => !isSame(before.get(name), now.get(name))),
  }
}

/** The members of the top level in which two differ. */
export function differing(one: ExactObject, other: ExactObject): string[] {
  const names = new Set([...one.keys(), ...other.keys()])
  return [...names].filter((name) => !isSame(one.get(name), other.get(name)))
}

/** Whether both are the same text: 1.0 is not 1.00. */
export function isSame(one: Exact | undefined, other: Exact | undefined): boolean {
  if (one === other || one === undefined || other === undefined) return one === other
  return exactText(one) === exactText(other)
}

// Where a description of a failure would show a hidden value, it has the mask within it.
const description = /^__conveyor_.*_return_description__$/

function holdsMask(name: string, value: Exact | undefined): boolean {
  if (typeof value === 'string') {
    return value === mask || (description.test(name) && value.includes(mask))
  }
  if (isList(value)) return value.some((item) => holdsMask('', item))
  return isExactObject(value) && [...value].some(([inner, item]) => holdsMask(inner, item))
}

export function valueAt(value: Exact | undefined, path: Path): Exact | undefined {
  let at = value
  for (const step of path) {
    if (isExactObject(at)) at = at.get(String(step))
    else at = isList(at) ? at[Number(step)] : undefined
  }
  return at
}

/** The value with another at the path; without one there (`undefined`). Nothing is changed. */
export function withValueAt(value: Exact, path: Path, put: Exact | undefined): Exact {
  const [step] = path
  if (step === undefined) return put ?? value
  const inner = isExactObject(value)
    ? value.get(String(step))
    : isList(value)
      ? value[Number(step)]
      : null
  const made = path.length === 1 ? put : withValueAt(inner ?? null, path.slice(1), put)
  if (isExactObject(value)) {
    const members = new Map(value)
    if (made === undefined) members.delete(String(step))
    else members.set(String(step), made)
    return members
  }
  if (!isList(value)) return value
  if (made === undefined) return value.filter((_, at) => at !== Number(step))
  return Object.assign([...value], { [step]: made })
}

/** Names in quotes, at most five of them. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, 5).map((name) => JSON.stringify(shortened(name, 60)))
  return `${shown.join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`
}

/** Cuts a text without splitting a surrogate pair. */
export function shortened(text: string, length_max: number): string {
  if (text.length <= length_max) return text
  return `${text.slice(0, length_max).replace(/[\ud800-\udbff]$/, '')}…`
}
