/**
 * How the model reads values: conversions and comparisons, as process-format and functions.md state
 * them.
 */
import type { Condition, Data, Json, ValueType } from './plan.ts'

export const isObject = (value: Json | undefined): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A text as it is, any other value as its JSON. */
export const textOfValue = (value: Json): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

export function numberOf(value: Json | undefined): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  return /^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$/.test(text) ? Number(text) : undefined
}

/** Undefined where it cannot be converted; a missing text is empty. */
export function convert(value: Json | undefined, type: ValueType): Json | undefined {
  switch (type) {
    case 'string':
      return value === undefined ? '' : textOfValue(value)
    case 'number':
      return numberOf(value)
    case 'boolean':
      if (typeof value === 'boolean') return value
      return value === 'true' ? true : value === 'false' ? false : undefined
    case 'array':
      return Array.isArray(value) ? value : parsed(value, '[', Array.isArray)
    case 'object':
      return isObject(value) ? value : parsed(value, '{', isObject)
  }
}

function parsed(
  value: Json | undefined,
  opening: string,
  is: (one: Json) => boolean,
): Json | undefined {
  if (typeof value !== 'string' || !value.trimStart().startsWith(opening)) return undefined
  try {
    const made = JSON.parse(value) as Json
    return is(made) ? made : undefined
  } catch {
    return undefined
  }
}

/** Whether a condition holds for both sides, which may be missing. */
export function compare(
  { fun, cast }: Pick<Condition, 'fun' | 'cast'>,
  found: Json | undefined,
  constant: Json | undefined,
): boolean {
  const left = convert(found, cast)
  if (fun === 'regexp') {
    return left !== undefined && new RegExp(String(constant)).test(textOfValue(found ?? ''))
  }
  const right = convert(constant, cast)
  if (left === undefined || right === undefined) return fun === 'not_eq'
  const [one, other] = [left, right].map((side) =>
    cast === 'array' || cast === 'object' ? sorted(side) : side,
  ) as [number, number]
  if (fun === 'eq') return one === other
  if (fun === 'not_eq') return one !== other
  if (fun === 'less') return one < other
  if (fun === 'more') return one > other
  return fun === 'less_or_eq' ? one <= other : one >= other
}

/** The same text for values that are equal but for the order of their keys. */
export function sorted(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map((key) => `${JSON.stringify(key)}:${sorted(value[key] as Json)}`).join()}}`
}

export const bytesOf = (data: Data): number => Buffer.byteLength(JSON.stringify(data))
